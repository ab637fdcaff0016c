"""A region goes back to a cut that the checkpoint volume has lost, from an object store."""

import asyncio
import shutil
import time
from base64 import b64encode
from pathlib import Path

import pytest
from tests.e2e.test_consistent_regions import PATIENCE_SECONDS, status_of
from tests.repositories.conftest import S3_CREDENTIALS, s3_store
from tests.repositories.servers import object_store
from tests.sdk.counting import Streams
from typer.testing import CliRunner

from streamgraft.cli._app import app
from streamgraft_common.conditions import find
from streamgraft_common.kinds import SECRET
from streamgraft_common.kube import KubeClient
from streamgraft_common.repositories import Store, manifest
from streamgraft_common.resources import CONSISTENT_REGION, JOB, ConsistentRegionStatus
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

app.kafka_sink("results", input=counted, topic="{sink}", key=["key"])
app.consistent_region("all", start=records, trigger="operatorDriven", retained_cuts=2)
"""


def contents(store: Store, namespace: str) -> manifest.Contents:
    return manifest.read(namespace, store.keys(manifest.savepoints(namespace)))


async def ask(kube: KubeClient, namespace: str, field: str, number: int) -> None:
    path = CONSISTENT_REGION.path(namespace, "counts-all")
    await kube.patch(path, {"spec": {field: number}})


async def cut(kube: KubeClient, namespace: str) -> ConsistentRegionStatus:
    """Ask for a cut, and for another if one is given up; return once there is one."""
    last = (await status_of(kube, namespace)).completed_sequence_id
    while (status := await status_of(kube, namespace)).completed_sequence_id == last:
        await ask(kube, namespace, "requested", status.sequence_id + 1)
        await asyncio.sleep(0.5)
    return status


async def back(kube: KubeClient, namespace: str, number: int) -> ConsistentRegionStatus:
    """Have the region go back; return once it has."""
    await ask(kube, namespace, "rollbackRequested", number)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (status := await status_of(kube, namespace)).completed_rollback_id < number:
        assert time.monotonic() < deadline, status
        await asyncio.sleep(0.2)
    return status


async def submitted(
    cluster: Cluster, kube: KubeClient, namespace: str, file: Path, address: str
) -> None:
    """Submit the application with a repository; return once it is healthy."""
    data = {key: b64encode(text.encode()).decode() for key, text in S3_CREDENTIALS.items()}
    metadata = {"name": "keys", "namespace": namespace}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
    await kube.create(SECRET.path(namespace), secret)
    options = ["--kubeconfig", str(cluster.kubeconfig), "-n", namespace]
    submit = [*options, "submit", str(file)]
    result = await asyncio.to_thread(CliRunner().invoke, app, submit)
    assert result.exit_code == 0, result.output
    repository = {"s3": {"bucket": "copies", "endpoint": address, "secret": "keys"}}
    settings = {"processingElement": {"checkpointRepository": repository}}
    job = await kube.patch(JOB.path(namespace, "counts"), {"spec": settings})
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        status = (await kube.get(JOB.path(namespace, "counts"))).get("status", {})
        known = status.get("submittedGeneration") == job["metadata"]["generation"]
        if known and status["phase"] == "Healthy":
            return
        assert time.monotonic() < deadline, status
        await asyncio.sleep(0.2)


async def test_a_cut_that_the_volume_has_lost_comes_from_the_repository(
    cluster: Cluster, kube: KubeClient, namespace: str, tmp_path: Path
) -> None:
    streams, file, sink = Streams(cluster, namespace), tmp_path / "counts.py", f"{namespace}-out"
    file.write_text(APPLICATION.format(source=streams.source, sink=sink))
    with object_store(tmp_path, "copies") as address:
        store = s3_store(address)
        await submitted(cluster, kube, namespace, file, address)
        streams.send(200)
        streams.counted(sink)
        status = await cut(kube, namespace)
        there = contents(store, namespace).shares
        assert len([item for item in there if item.savepoint == status.cuts[-1].savepoint]) == 4

        streams.send(100)
        streams.counted(sink)
        shutil.rmtree(cluster.checkpoints / namespace / "savepoints")
        await back(kube, namespace, 1)
        before = len(streams.counted(sink))
        streams.send(100)
        assert len(streams.counted(sink)) > before

        whole = status.cuts[-1].savepoint
        status = await cut(kube, namespace)
        harmed = status.cuts[-1].savepoint
        streams.send(100)
        streams.counted(sink)
        shutil.rmtree(cluster.checkpoints / namespace / "savepoints" / harmed)
        shares = contents(store, namespace).shares
        store.delete([item.key(namespace) for item in shares if item.savepoint == harmed][:1])
        status = await back(kube, namespace, status.rollback_id + 1)
        assert status.rolls_back_to == whole
        assert [bool(item.damaged) for item in status.cuts] == [False, True]
        condition = find(status.conditions, "CutsSound")
        assert condition is not None
        assert (condition.status, condition.reason) == ("False", "CutDamaged")
        assert f"{harmed} is damaged" in condition.message
        streams.send(100)
        streams.counted(sink)

        await kube.delete(JOB.path(namespace, "counts"))
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len((found := contents(store, namespace)).removed) < 2:
            assert time.monotonic() < deadline, found
            await asyncio.sleep(0.5)
