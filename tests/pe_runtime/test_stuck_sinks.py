"""Functions of sinks that do not return, when their query is to stop."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from streamgraft_common.batches import Batch
from streamgraft_pe_runtime import query
from streamgraft_pe_runtime.conf import spark_conf
from streamgraft_pe_runtime.plan import Plan, SinkCall
from streamgraft_pe_runtime.query import StillRuns
from streamgraft_pe_runtime.spark_work import SparkQuery

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


async def test_the_process_ends_and_the_shard_is_not_released() -> None:
    class Stuck:
        def stop(self, deadline_seconds: float) -> bool:
            raise StillRuns("it does not end")

    said: list[str] = []
    stuck: Any = Stuck()
    stopping = asyncio.create_task(SparkQuery(stuck, said.append).stop(1.0))
    done, _ = await asyncio.wait({stopping}, timeout=0.1)
    assert not done
    assert said == ["it does not end"]
    stopping.cancel()
