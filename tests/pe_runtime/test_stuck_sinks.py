"""Functions of sinks that do not return, when their query is to stop."""

import asyncio
import threading
from collections.abc import Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from streamgraft_common.batches import Batch
from streamgraft_common.resources import Saving
from streamgraft_pe_runtime import query, query_logs
from streamgraft_pe_runtime.conf import spark_conf
from streamgraft_pe_runtime.joint_checkpoints import JointCheckpoints
from streamgraft_pe_runtime.plan import Plan, SinkCall
from streamgraft_pe_runtime.query import StillRuns
from streamgraft_pe_runtime.spark_log import Position
from streamgraft_pe_runtime.spark_work import SparkQuery, SparkStage

_TIMEOUT = "spark.sql.streaming.stopTimeout"


@pytest.mark.integration
def test_a_stop_does_not_wait_for_ever(session: SparkSession, tmp_path: Path) -> None:
    """Nor does it say that the query has ended."""
    called, lock = threading.Event(), threading.Event()

    def write(rows: DataFrame, batch: Batch) -> None:
        called.set()
        lock.wait(60)

    rows = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    plan = Plan(rows, SinkCall(write, "writer", 0), "append")
    before = session.conf.get(_TIMEOUT)
    session.conf.set(_TIMEOUT, "500ms")
    try:
        running = query.start(plan, tmp_path / "0", 0.2, "stored-0")
        assert called.wait(60)
        with pytest.raises(StillRuns, match="stored-0 can't be cut off: its function does not ret"):
            running.stop(0.2)
        lock.set()
        running.stop(10)
    finally:
        lock.set()
        session.conf.set(_TIMEOUT, str(before))


def test_a_pod_waits_for_half_a_minute() -> None:
    """Spark's default is for ever."""
    assert spark_conf("pe", 1, {})[_TIMEOUT] == "30s"


class Stuck:
    """A query with a batch that does not end."""

    def stop(self, deadline_seconds: float) -> bool:
        """Fail."""
        raise StillRuns("it does not end")

    def failure(self) -> str:
        """Return that the query has ended, as far as Spark knows."""
        return "out of order"


async def ends(work: Coroutine[Any, Any, object], said: list[str]) -> None:
    """Check that the process is told to end, and that until then nothing goes on."""
    waiting = asyncio.create_task(work)
    async with asyncio.timeout(30):
        while not said and not waiting.done():
            await asyncio.sleep(0.01)
    done, _ = await asyncio.wait({waiting}, timeout=0.2)
    waiting.cancel()
    assert not done, waiting.exception()
    assert said == ["it does not end"]


async def test_the_process_ends_and_the_shard_is_not_released() -> None:
    said: list[str] = []
    stuck: Any = Stuck()
    await ends(SparkQuery(stuck, said.append).stop(1.0), said)


def stage(folder: Path, said: list[str], start: Any) -> SparkStage:
    """Return a stage whose queries are started so, and can't be followed."""

    def watch(*_: object) -> None:
        raise OSError("no space left on device")

    storage: Any = SimpleNamespace(
        folder=folder,
        checkpoint=lambda shard: folder / str(shard),
        prepare=lambda shard: None,
        claim=lambda request: None,
        place=lambda request: folder / "saved",
    )
    driver: Any = SimpleNamespace(
        state_provider=None,
        joint=False,
        obstacle="",
        start=start,
        ids_of=lambda inputs, noted: {},
        ledgers=lambda metadata: SimpleNamespace(every=list, shared=lambda begun: {}),
    )
    progress: Any = SimpleNamespace(watch=watch, brokers=None)
    metadata: Any = SimpleNamespace(shard_count=2, inputs=[], real_time=False)
    return SparkStage(driver, storage, progress, metadata, said.append)


@pytest.mark.parametrize("where", ["in its start", "behind its start"])
async def test_a_query_whose_start_fails_and_that_does_not_end_is_not_started_again(
    tmp_path: Path, where: str
) -> None:
    """What a former delivery has noted can't be given up, or nobody could follow it."""

    def start(shards: object, checkpoint: Path, names: object, joint: bool) -> Stuck:
        if where == "in its start":
            Stuck().stop(0)
        return Stuck()

    said: list[str] = []
    await ends(stage(tmp_path, said, start).start(0, 1), said)


@pytest.mark.parametrize("asked", ["start", "save"])
async def test_a_former_owner_s_batch_that_does_not_end_is_not_run_again(
    tmp_path: Path, asked: str
) -> None:
    """Nor is the savepoint tried again that has to wait for it."""
    before = JointCheckpoints(tmp_path, lambda checkpoint, shards: None)
    checkpoint = before.take_over([0, 1], lambda topic, shard: 0)
    query_logs.write(checkpoint, 0, Position(({"in": {"0": 1, "1": 1}},), {"conf": {}}))
    (checkpoint / "offsets" / "1").write_text((checkpoint / "offsets" / "0").read_text())
    said: list[str] = []
    found = stage(tmp_path, said, lambda shards, checkpoint, names, joint: Stuck())
    request = Saving(savepoint="first", uid="u", shards=[0])
    await ends(found.start(0, 1) if asked == "start" else found.save(request), said)
