"""Labels of ports, from within a PE's functions: by the rights of the PE's own account."""

import asyncio
from pathlib import Path

import pytest
from tests.sdk.counting import KEYS, Streams
from typer.testing import CliRunner

from streamgraft.cli._app import app
from streamgraft_common.kube import KubeClient
from streamgraft_common.resources import PROCESSING_ELEMENT
from streamgraft_local import Cluster

pytestmark = [pytest.mark.e2e, pytest.mark.long]

APPLICATION = """
import json
from pathlib import Path

from pyspark.sql import functions as F
from pyspark.sql import types as T

import streamgraft as sg

app = sg.Application("ports", trigger_seconds=0.3)
records = app.kafka_source("records", topic="{source}", schema="key string, id bigint")


@F.udf(T.StringType())
def place(label):
    found = sg.resolve(label)
    return f"{{found.topic}} {{found.pe}} {{found.host}}"


with app.parallel("work", key=["key"], width=1, max_width=2):

    @app.operator(inputs=records)
    def placed(records):
        return records.withColumn("place", place(F.lit("placed[0].0")))

    @app.sink(inputs=placed)
    def told(rows, batch):
        found = rows.where("id = 0").collect()
        if found:
            here = sg.resolve("placed[0].0")
            told = [found[0].place, f"{{here.topic}} {{here.pe}} {{here.host}}"]
            Path("{file}").write_text(json.dumps(told))


app.kafka_sink("out", input=placed, topic="{source}-out")
"""


async def test_functions_of_rows_and_of_sinks_resolve_labels(
    cluster: Cluster, kube: KubeClient, namespace: str, tmp_path: Path
) -> None:
    streams, file, told = Streams(cluster, namespace), tmp_path / "ports.py", tmp_path / "told"
    file.write_text(APPLICATION.format(source=streams.source, file=told))
    streams.send(KEYS)
    options = ["--kubeconfig", str(cluster.kubeconfig), "-n", namespace]
    submit = [*options, "submit", str(file), "--create-topics", "--wait"]
    result = await asyncio.to_thread(CliRunner().invoke, app, submit)
    assert result.exit_code == 0, result.output
    rows = await asyncio.to_thread(
        streams.read, f"{streams.source}-out", lambda rows: len(rows) == KEYS
    )
    (place,) = {row["place"] for row in rows}
    assert told.read_text() == f'["{place}", "{place}"]'
    topic, name, host = place.split()
    pe = (await kube.get(PROCESSING_ELEMENT.path(namespace, name)))["spec"]
    assert (pe["region"], pe["channel"]) == ("work", 0)
    assert topic.startswith(f"{namespace}.ports.")
    assert host == f"{name}.{namespace}.svc"
