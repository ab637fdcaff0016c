"""Where in its interval a query is triggered."""

import itertools
import math
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tests.pe_runtime.one_driver import driver

from streamgraft_local import Cluster
from streamgraft_pe_runtime import java_classes
from streamgraft_pe_runtime.query import ShardQuery
from streamgraft_pe_runtime.triggers import STAGGERED_CLOCK, Triggers

SESSION: Any = None


@pytest.mark.parametrize(
    ("now", "share", "left"),
    [(0.0, 0.0, 2.0), (3.5, 0.0, 0.5), (6.0, 0.0, 2.0), (6.0, 0.25, 0.5), (6.5, 0.25, 2.0)],
)
def test_triggers_are_at_a_share_of_the_interval(now: float, share: float, left: float) -> None:
    """Without one at the multiples of the interval, where Spark's own are."""
    assert Triggers(SESSION, 2.0, share).seconds_to_next(now) == left


@pytest.fixture
def session(cluster: Cluster) -> Iterator[SparkSession]:
    """Return the session of a driver in which batches have run before: they take no second."""
    with driver(cluster, {}) as session:
        writer = ticks(session).writeStream.foreachBatch(count)
        query = writer.trigger(processingTime="100 milliseconds").start()
        batches(query, 3)
        query.stop()
        yield session


def ticks(session: SparkSession) -> DataFrame:
    """Return a stream with a new row at each trigger."""
    return session.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()


def count(batch: DataFrame, batch_id: int) -> None:
    """Take up a batch."""
    batch.count()


def batches(query: StreamingQuery, count: int) -> list[tuple[float, float]]:
    """Wait for so many batches, and return when they began and ended (Unix time)."""
    deadline = time.monotonic() + 60
    while len(query.recentProgress) < count:
        assert query.exception() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    began = [datetime.fromisoformat(done.timestamp).timestamp() for done in query.recentProgress]
    took = [done.durationMs["triggerExecution"] / 1000 for done in query.recentProgress]
    return [(at, at + seconds) for at, seconds in zip(began, took, strict=True)]


def are_at(found: list[tuple[float, float]], interval: float, share: float) -> bool:
    """Return whether batches followed each other at the times of triggers: a batch that takes until
    after the next time is followed at once, or at the time behind it, if it is the first and had no
    such times when it began."""

    def behind(now: float) -> float:
        return (math.floor(now / interval - share) + 1 + share) * interval

    return all(
        any(-0.01 < at - due < 1.5 for due in (max(ended, behind(began)), behind(ended)))
        for (began, ended), (at, _) in itertools.pairwise(found)
    )


@pytest.mark.integration
def test_a_query_is_triggered_at_its_own_time(session: SparkSession, tmp_path: Path) -> None:
    """From its second batch on, though Spark had planned that before the time was set; and within
    an interval of the first, whenever in the interval it started."""
    for part in range(3):
        time.sleep(part * 2 / 3)
        query = ticks(session).writeStream.foreachBatch(count)
        running = query.trigger(processingTime="2 seconds").start()
        ShardQuery(session, running, Triggers(session, 2.0, share=0.25), tmp_path).set_interval(2.0)
        found = batches(running, 3)
        running.stop()
        assert are_at(found, 2.0, 0.25), found


@pytest.mark.integration
def test_a_new_interval_holds_from_the_next_trigger_on(
    session: SparkSession, tmp_path: Path
) -> None:
    """Though Spark had planned that by the old one, which was longer, before the batch."""

    def slow(batch: DataFrame, batch_id: int) -> None:
        batch.count()
        time.sleep(1.0)

    query = ticks(session).writeStream.foreachBatch(slow)
    running = query.trigger(processingTime="1 hour").start()
    shard = ShardQuery(session, running, Triggers(session, 3600.0, share=0.5), tmp_path)
    shard.set_interval(3600.0)
    shard.set_interval(4.0)
    found = batches(running, 2)
    running.stop()
    assert are_at(found, 4.0, 0.5), found


_SET_BACK = """
public class SetBack implements org.apache.spark.util.Clock {
    private final long began = System.nanoTime();
    public long getTimeMillis() {
        long since = (nanoTime() - began) / 1000000L;
        return 1000000000000L + since - (since > 300 ? 3600000 : 0);
    }
    public long nanoTime() { return System.nanoTime(); }
    public long waitTillTime(long time) { throw new UnsupportedOperationException(); }
}
"""


@pytest.mark.integration
def test_a_clock_that_is_set_back_holds_up_nothing(session: SparkSession) -> None:
    """By an hour, while the trigger is awaited; the next ones come in their interval."""
    clock = java_classes.instance(session, STAGGERED_CLOCK, "StaggeredClock")
    clock.set(200, 0)
    inner = clock.getClass().getDeclaredField("clock")
    inner.setAccessible(True)
    inner.set(clock, java_classes.instance(session, _SET_BACK, "SetBack"))
    times: list[int] = []

    def wait() -> None:
        times.extend(clock.waitTillTime(0) for _ in range(5))

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    waiting.join(30)
    assert len(times) == 5
    assert times[0] - times[-1] > 3_000_000
