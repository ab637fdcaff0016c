"""Cuts of a real job in an object store and on Redis: fetched, damaged, removed, and an outage."""

import asyncio
import shutil
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.test_consistent_regions import PATIENCE_SECONDS, status_of
from tests.repositories.conftest import PASSWORD, S3_CREDENTIALS, s3_store
from tests.repositories.servers import free_port, object_store, redis_server
from tests.sdk.counting import Streams
from typer.testing import CliRunner

from streamgraft.cli._app import app
from streamgraft_common.conditions import find
from streamgraft_common.kinds import SECRET
from streamgraft_common.kube import KubeClient
from streamgraft_common.repositories import Credentials, Store, manifest
from streamgraft_common.repositories.redis_store import RedisStore
from streamgraft_common.resources import (
    CONSISTENT_REGION,
    JOB,
    ConsistentRegionStatus,
    RedisRepository,
)
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
app.consistent_region("all", start=records, trigger="operatorDriven", retained_cuts=2,
    drain_timeout_seconds=30)
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


@dataclass(frozen=True)
class Server:
    """A repository that runs, and what a job says of it."""

    store: Store
    settings: dict[str, Any]
    secret: Credentials


@contextmanager
def server(kind: str, folder: Path) -> Iterator[Server]:
    """Run an object store or a Redis server."""
    if kind == "s3":
        with object_store(folder, "copies") as address:
            bucket = {"bucket": "copies", "endpoint": address, "secret": "keys"}
            settings: dict[str, Any] = {"checkpointRepository": {"s3": bucket}}
            yield Server(s3_store(address), settings, S3_CREDENTIALS)
        return
    port = free_port()
    redis = {"service": "127.0.0.1", "port": port, "restrictedProperty": "password"}
    settings = {
        "checkpointRepository": {"redis": redis},
        "restrictedPropertiesSecret": "keys",
    }
    with redis_server(folder / "redis", "127.0.0.1", port, "--requirepass", PASSWORD):
        shown = {"password": PASSWORD}
        store = RedisStore(RedisRepository.model_validate(redis), "", shown)
        yield Server(store, settings, shown)
        store.close()


async def submitted(
    cluster: Cluster, kube: KubeClient, namespace: str, file: Path, kept: Server
) -> None:
    """Submit the application with a repository; return once it is healthy."""
    data = {key: b64encode(text.encode()).decode() for key, text in kept.secret.items()}
    metadata = {"name": "keys", "namespace": namespace}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
    await kube.create(SECRET.path(namespace), secret)
    options = ["--kubeconfig", str(cluster.kubeconfig), "-n", namespace]
    submit = [*options, "submit", str(file)]
    result = await asyncio.to_thread(CliRunner().invoke, app, submit)
    assert result.exit_code == 0, result.output
    settings = {"processingElement": kept.settings}
    job = await kube.patch(JOB.path(namespace, "counts"), {"spec": settings})
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        status = (await kube.get(JOB.path(namespace, "counts"))).get("status", {})
        known = status.get("submittedGeneration") == job["metadata"]["generation"]
        if known and status["phase"] == "Healthy":
            return
        assert time.monotonic() < deadline, status
        await asyncio.sleep(0.2)


@pytest.mark.parametrize("kind", ["s3", "redis"])
async def test_cuts_are_kept_where_no_volume_can_lose_them(
    cluster: Cluster, kube: KubeClient, namespace: str, tmp_path: Path, kind: str
) -> None:
    streams, file, sink = Streams(cluster, namespace), tmp_path / "counts.py", f"{namespace}-out"
    file.write_text(APPLICATION.format(source=streams.source, sink=sink))
    with server(kind, tmp_path) as kept:
        store = kept.store
        await submitted(cluster, kube, namespace, file, kept)
        streams.send(200)
        streams.counted(sink)
        status = await cut(kube, namespace)
        whole = status.cuts[-1].savepoint
        there = contents(store, namespace).shares
        assert len([item for item in there if item.savepoint == whole]) == 4

        streams.send(100)
        streams.counted(sink)
        shutil.rmtree(cluster.checkpoints / namespace / "savepoints")
        await back(kube, namespace, 1)
        before = len(streams.counted(sink))
        streams.send(100)
        assert len(streams.counted(sink)) > before

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

        last = (await cut(kube, namespace)).sequence_id
        deadline = time.monotonic() + PATIENCE_SECONDS
        while whole not in {name for name, _ in contents(store, namespace).removed}:
            assert time.monotonic() < deadline, contents(store, namespace).removed
            await asyncio.sleep(0.5)
    await ask(kube, namespace, "requested", last + 1)
    while not (status := await status_of(kube, namespace)).failed_cuts:
        assert time.monotonic() < deadline, status
        await asyncio.sleep(0.5)
    condition = find(status.conditions, "Ready")
    assert condition is not None
    assert condition.reason == "CutFailed"
    assert ("s3://copies" if kind == "s3" else "0 of 1 Redis servers") in condition.message
    streams.send(100)
    streams.counted(sink)
