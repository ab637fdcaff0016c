"""A consistent region of a real job: cut again and again, and its results stay exact."""

import asyncio
import time
from pathlib import Path

import pytest
from tests.sdk.counting import Streams
from typer.testing import CliRunner

from streamgraft.cli._app import app
from streamgraft_common.kube import KubeClient
from streamgraft_common.resources import CONSISTENT_REGION, SAVEPOINT, ConsistentRegionStatus
from streamgraft_local import Cluster

pytestmark = [pytest.mark.e2e, pytest.mark.long]

APPLICATION = """
import streamgraft as sg

app = sg.Application("counts", trigger_seconds=0.3)
records = app.kafka_source("records", topic="{source}", schema="key string")

with app.parallel("work", key=["key"], width=1, max_width=2):

    @app.operator(inputs=records, output_mode="update")
    def counted(rows):
        return rows.groupBy("key").count()

app.kafka_sink("results", input=counted, topic="{sink}", key=["key"], apart=True)
app.consistent_region("all", start=records, period_seconds=2, retained_cuts=2)
"""
PATIENCE_SECONDS = 120.0


async def status_of(kube: KubeClient, namespace: str) -> ConsistentRegionStatus:
    item = await kube.get(CONSISTENT_REGION.path(namespace, "counts-all"))
    return ConsistentRegionStatus.model_validate(item.get("status") or {})


async def cut_after(kube: KubeClient, namespace: str, number: int) -> ConsistentRegionStatus:
    """Wait for a cut that is complete and later than one."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (status := await status_of(kube, namespace)).completed_sequence_id <= number:
        assert time.monotonic() < deadline, status
        await asyncio.sleep(0.1)
    return status


async def test_a_region_is_cut_while_records_flow_and_loses_none(
    cluster: Cluster, kube: KubeClient, namespace: str, tmp_path: Path
) -> None:
    streams, file = Streams(cluster, namespace), tmp_path / "counts.py"
    sink = f"{namespace}-out"
    file.write_text(APPLICATION.format(source=streams.source, sink=sink))
    options = ["--kubeconfig", str(cluster.kubeconfig), "-n", namespace]
    submit = [*options, "submit", str(file), "--wait"]
    result = await asyncio.to_thread(CliRunner().invoke, app, submit)
    assert result.exit_code == 0, result.output

    status = await cut_after(kube, namespace, 0)
    first = status.completed_sequence_id
    for _ in range(3):
        streams.send(100)
        status = await cut_after(kube, namespace, status.completed_sequence_id)
    streams.counted(sink)

    assert status.completed_sequence_id >= first + 3
    assert len(status.cuts) == 2
    last = status.cuts[-1]
    saved = (await kube.get(SAVEPOINT.path(namespace, last.savepoint)))["status"]
    assert (saved["phase"], saved["uncleanShards"] or 0, saved["shards"]) == ("Completed", 0, 4)
    folder = cluster.checkpoints / namespace / "savepoints" / last.savepoint
    found = sorted(item.name for item in folder.iterdir())
    assert found == ["counted", "records", "results", "savepoint.json"]
