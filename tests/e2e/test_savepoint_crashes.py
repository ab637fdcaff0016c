"""Pods are killed while state is dealt out, and while a stage stops: both go on."""

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.sdk.counting import KEYS, Streams
from typer.testing import CliRunner

from bench.pods import process_of
from streamgraft.cli._app import app
from streamgraft_common.kube import KubeClient, load_config
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import (
    JOB,
    PROCESSING_ELEMENT,
    SAVEPOINT,
    SavepointSpec,
    SavepointStatus,
)
from streamgraft_local import Cluster

pytestmark = [pytest.mark.e2e, pytest.mark.long]

SLOW_RECORDS, PAUSE = 30, 0.4
PATIENCE_SECONDS = 240.0
APPLICATION = """
import time

from pyspark.sql import functions as F

import streamgraft as sg

app = sg.Application("counts", trigger_seconds=0.3)
records = app.kafka_source("records", topic="{source}", schema="key string, pause double")


def after(key, pause):
    time.sleep(pause)
    return key


@app.operator(inputs=records)
def paced(rows):
    return rows.select(F.udf(after, "string")("key", "pause").alias("key"))


with app.parallel("work", key=["key"], width=1, max_width={groups}):

    @app.operator(inputs=paced, output_mode="update")
    def counted(rows):
        return rows.groupBy("key").count()

app.kafka_sink("results", input=counted, topic="{sink}", key=["key"], apart=True)
"""


class World:
    """A namespace of the cluster, as a user sees it."""

    def __init__(self, cluster: Cluster, namespace: str, streams: Streams, folder: Path) -> None:
        self.streams = streams
        self._cluster, self._namespace, self._folder = cluster, namespace, folder

    def run(self, *arguments: str | Path) -> None:
        """Run a command."""
        options = ["--kubeconfig", str(self._cluster.kubeconfig), "-n", self._namespace]
        result = CliRunner().invoke(app, [*options, *map(str, arguments)])
        assert result.exit_code == 0, result.output

    def written(self, name: str, groups: int) -> Path:
        """Write an application; its sink has its name."""
        file = self._folder / f"{name}.py"
        sink = f"{self.streams.source}-{name}"
        text = APPLICATION.format(source=self.streams.source, sink=sink, groups=groups)
        file.write_text(text)
        return file

    def ask(self, request: Callable[[KubeClient], Awaitable[Any]]) -> Any:
        """Ask the API server."""

        async def asked() -> Any:
            async with KubeClient(load_config(self._cluster.kubeconfig)) as client:
                return await request(client)

        return asyncio.run(asked())

    def pe(self, job: str, stage: str) -> Object:
        """Return the first PE of a stage, once there is one."""
        path = PROCESSING_ELEMENT.path(self._namespace)

        def found() -> list[Object]:
            items = self.ask(lambda client: client.get(path))["items"]
            places = [(item["spec"]["job"], item["spec"]["stageName"]) for item in items]
            return [
                item for item, place in zip(items, places, strict=True) if place == (job, stage)
            ]

        first: Object = until(found)[0]
        return first

    def process(self, job: str, stage: str) -> int:
        """Wait until the first PE of a stage has a pod that runs; return its process."""
        pe = until(lambda: self._with_pod(job, stage))
        path = f"/api/v1/namespaces/{self._namespace}/pods/{pe['status']['pod']}"
        pod = until(lambda: _running(self.ask(lambda client: client.get(path))))
        return process_of(pod)

    def _with_pod(self, job: str, stage: str) -> Object | None:
        pe = self.pe(job, stage)
        return pe if pe.get("status", {}).get("pod") else None

    def checkpoints(self, job: str, stage: str) -> Path:
        """Return the checkpoints of a stage's shards."""
        found = self.ask(lambda client: client.get(JOB.path(self._namespace, job)))
        place = f"{job}-{found['metadata']['uid']}"
        return self._cluster.checkpoints / self._namespace / place / stage

    def save(self, name: str, job: str) -> None:
        """Begin a savepoint."""
        spec = SavepointSpec(job=job)
        body = SAVEPOINT.manifest(name, self._namespace, spec)
        self.ask(lambda client: client.create(SAVEPOINT.path(self._namespace), body))

    def saved(self, name: str) -> SavepointStatus:
        """Return what there is of a savepoint."""
        path = SAVEPOINT.path(self._namespace, name)
        item = self.ask(lambda client: client.get(path))
        return SavepointStatus.model_validate(item.get("status") or {})


def until(look: Callable[[], Any]) -> Any:
    """Look again and again until there is something; return it."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (found := look()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def newest(log: Path) -> int:
    """Return the number of the newest entry of a checkpoint's log; -1 without one."""
    return max((int(file.name) for file in log.glob("[0-9]*")), default=-1)


@pytest.fixture
def world(cluster: Cluster, namespace: str, tmp_path: Path) -> World:
    """The namespace of the test, with a topic for records."""
    return World(cluster, namespace, Streams(cluster, namespace), tmp_path)


def test_savepoints_outlast_kills_of_pods(world: World) -> None:
    streams = world.streams
    world.run("submit", world.written("counts", 4), "--wait")
    streams.send(200)
    streams.counted(f"{streams.source}-counts")
    world.run("savepoint", "create", "counts", "--name", "clean")
    assert world.saved("clean").unclean_shards == 0

    # While state is dealt out to other key groups: it begins again, and is exact.
    world.run("savepoint", "restore", "clean", world.written("wider", 8), "--as", "wider", "--yes")
    # All that has to be asked for is known before: it takes but some tenths of a second.
    process, folder = world.process("wider", "counted"), world.checkpoints("wider", "counted")
    until(lambda: _is_dealing_out(folder))
    os.kill(process, signal.SIGKILL)
    assert _is_dealing_out(folder)  # for ever: nobody ends what was begun there
    streams.send(80)
    counts = streams.counted(f"{streams.source}-wider")
    assert min(count for _, count in counts) > 200 // KEYS
    world.run("cancel", "wider")

    # While the source stops for a savepoint, in the midst of a batch: its next launch ends that
    # before the region stops. Else a job that starts from it would count the batch twice.
    log = world.checkpoints("counts", "records") / "0"
    streams.counted(f"{streams.source}-counts")
    streams.send(SLOW_RECORDS, PAUSE)
    until(lambda: newest(log / "offsets") > newest(log / "commits"))
    world.save("cut", "counts")
    process = world.process("counts", "records")
    until(lambda: _is_stopping(world))
    os.kill(process, signal.SIGKILL)
    status = until(lambda: _over(world.saved("cut")))
    assert (status.phase, status.unclean_shards) == ("Completed", 0)
    world.run("savepoint", "restore", "cut", world.written("again", 4), "--as", "again")
    streams.send(2 * KEYS)
    streams.counted(f"{streams.source}-again")


def _is_dealing_out(checkpoints: Path) -> bool:
    """Return whether a checkpoint of a stage is being made beside its place."""
    return any(checkpoints.glob(".*-*"))


def _running(pod: Object) -> Object | None:
    return pod if pod.get("status", {}).get("phase") == "Running" else None


def _is_stopping(world: World) -> bool:
    runtime = world.pe("counts", "records")["status"]["runtime"]
    return bool(runtime.get("shards", {}).get("0", {}).get("state") == "Stopping")


def _over(status: SavepointStatus) -> SavepointStatus | None:
    return status if status.phase in ("Completed", "Failed") else None
