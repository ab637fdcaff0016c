"""A job is edited while records come, again and again: what it counts is what was sent.

The last edit moves every PE to another id; records are sent before, between and during the edits.
"""

from pathlib import Path
from threading import Event, Thread

import pytest
from tests.sdk.counting import Streams
from typer.testing import CliRunner, Result

from streamgraft.cli._app import app
from streamgraft_local import Cluster

pytestmark = pytest.mark.e2e

EACH = 100
SOME = 10
PAUSE_SECONDS = 0.1
"""Between so many records while the job is edited."""
APPLICATION = """
from pyspark.sql import functions as F

import streamgraft as sg

app = sg.Application("counts", trigger_seconds=0.3)
{first}
records = app.kafka_source("records", topic="{source}", schema="key string")

with app.parallel("work", key=["key"], width=1, max_width=2):

    @app.operator(inputs=records, output_mode="update")
    def {name}(rows):
        return rows.groupBy("key"){aggregate}

{last}
app.kafka_sink("{name}-results", input={name}, topic="{sink}", key=["key"])
"""
COUNT = ".count()"
SUM = ".agg(F.sum(F.length('key')).alias('count'))"
BRANCH = """
    @app.operator(inputs={name})
    def doubled(rows):
        return rows.withColumn("count", F.col("count") * 2)

app.kafka_sink("more-results", input=doubled, topic="{sink}-more", key=["key"])
"""
SOURCE = """
other = app.kafka_source("other", topic="{source}", schema="key string")
app.kafka_sink("copies", input=other, topic="{sink}-copies")
"""


def test_edits_keep_state_and_positions(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    streams = Streams(cluster, namespace)
    sink = f"{streams.source}-out"

    def run(*arguments: str | Path) -> Result:
        options = ["--kubeconfig", str(cluster.kubeconfig), "-n", namespace]
        return CliRunner().invoke(app, [*options, *map(str, arguments)])

    def written(
        name: str = "counted", first: str = "", last: str = "", aggregate: str = COUNT
    ) -> Path:
        file = tmp_path / "counts.py"
        values = {"source": streams.source, "sink": sink, "name": name, "aggregate": aggregate}
        parts = {"first": first.format(**values), "last": last.format(**values)}
        file.write_text(APPLICATION.format(**values, **parts))
        return file

    assert run("submit", written(), "--wait").exit_code == 0
    streams.send(EACH)
    streams.counted(sink)
    for edited in (written(last=BRANCH), written(first=SOURCE, last=BRANCH)):
        done = Event()
        sender = Thread(target=_send, args=(streams, done))
        sender.start()
        try:
            result = run("submit", edited, "--wait")
        finally:
            done.set()
            sender.join()
        assert result.exit_code == 0, result.output
        streams.send(EACH)
        streams.counted(sink)

    summed = written(first=SOURCE, last=BRANCH, aggregate=SUM)
    assert "counted: state impossible" in run("plan", summed).output
    refused = run("submit", summed, "--wait", "--timeout", "15")
    assert refused.exit_code == 1
    assert "holds (count bigint), and would hold (sum bigint)" in " ".join(refused.output.split())

    renamed = written("tallied", first=SOURCE)
    shown = run("plan", renamed).output
    assert "counted: state dropped" in shown
    assert "tallied: state new" in shown
    refused = run("submit", renamed, "--wait", "--timeout", "15")
    assert refused.exit_code == 1
    assert "--drop-state counted" in " ".join(refused.output.split())
    streams.send(EACH)
    streams.counted(sink)


def _send(streams: Streams, done: Event) -> None:
    """Send records until it is done."""
    while not done.wait(PAUSE_SECONDS):
        streams.send(SOME)
