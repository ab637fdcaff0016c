"""When the batches of a query in real-time mode end: at its own time, or immediately.

Spark ends them a fixed time after they began. So queries that once began together end all their
batches together, and each waits for the commits of all others; and a query that is to stop would go
on for seconds, since only between two batches it can be stopped exactly. Both go by a clock
that Spark reads when it plans a batch, and before each record.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from pyspark.sql import SparkSession

from streamgraft_pe_runtime import java_classes
from streamgraft_pe_runtime.staggering import Stagger

_STAGGER = "streamgraft.stagger"
"""Local property of a query's thread, and so of its tasks: length of a batch and when it ends."""
_RUN = "spark.jobGroup.id"
"""The same with the id of the query's run, which Spark sets."""
_installing = threading.Lock()
_BATCH_CLOCK = f"""
public class BatchClock implements org.apache.spark.util.Clock {{
    private final org.apache.spark.util.Clock clock = new org.apache.spark.util.SystemClock();
    private final java.util.Set ended = java.util.concurrent.ConcurrentHashMap.newKeySet();
    public void end(String run) {{ ended.add(run); }}
    public void forget(String run) {{ ended.remove(run); }}
    public long nanoTime() {{ return clock.nanoTime(); }}
    public long waitTillTime(long time) {{ return clock.waitTillTime(time); }}
    public long getTimeMillis() {{
        long now = clock.getTimeMillis();
        org.apache.spark.TaskContext task = org.apache.spark.TaskContext.get();
        if (task == null) return planned(now);
        if (ended.isEmpty() || !ended.contains(task.getLocalProperty("{_RUN}"))) return now;
        return Long.MAX_VALUE;
    }}
    private long planned(long now) {{
        scala.Option context = org.apache.spark.SparkContext$.MODULE$.getActive();
        if (context.isEmpty()) return now;
        org.apache.spark.SparkContext driver = (org.apache.spark.SparkContext) context.get();
        String stagger = driver.getLocalProperty("{_STAGGER}");
        if (stagger == null) return now;
        int space = stagger.indexOf(' ');
        long length = Long.parseLong(stagger.substring(0, space));
        return beginning(now, length, Long.parseLong(stagger.substring(space + 1)));
    }}
    /** When a batch of this length would begin that ends at its next time that is not too near. */
    public static long beginning(long now, long length, long stagger) {{
        long first = now + length / 5;
        return first + Math.floorMod(stagger - first, length) - length;
    }}
}}
"""


class BatchEnds:
    """The ends of the batches of one query. `seconds`: the length of a batch."""

    def __init__(self, session: SparkSession, seconds: float, stagger: Stagger, scans: int) -> None:
        self._clock = _clock(session)
        self._seconds = seconds
        self._stagger = stagger
        self.scans = scans
        self.may_be_early = stagger.count > 1 and scans == 1
        """Whether it surely reads one partition: others, where no record comes, would go on to the
        end of the batch, and the records of this one would wait for them."""

    def seconds_to_lull(self, now: float) -> float:
        """Return the seconds until its end meets no end of another shard. `now`: Unix time."""
        return self._stagger.seconds_to_lull(now, self._seconds)

    def end(self, run: str) -> None:
        """End the running batch of a query's run before its next record, and any later one."""
        self._clock.end(run)

    def forget(self, run: str) -> None:
        """Drop a run that is over."""
        self._clock.forget(run)


@contextmanager
def staggered(
    session: SparkSession, seconds: float, stagger: Stagger, scans: int = 1
) -> Iterator[BatchEnds]:
    """Have a query that is started inside end its batches at its own time in the interval.

    `seconds`: length of a batch. The first is shorter, or up to a fifth longer, to get there.
    `scans`: how many times the query reads an input; shards of a stage with others read one
    partition of each.
    """
    ends, context = BatchEnds(session, seconds, stagger, scans), session.sparkContext
    length = round(seconds * 1000)
    context.setLocalProperty(_STAGGER, f"{length} {round(stagger.share * length)}")
    try:
        yield ends
    finally:
        context.setLocalProperty(_STAGGER, None)  # type: ignore[arg-type]


def _clock(session: SparkSession) -> Any:
    with _installing:
        return _installed(session)


@cache
def _installed(session: SparkSession) -> Any:
    clock = java_classes.instance(session, _BATCH_CLOCK, "BatchClock")
    jvm: Any = session._jvm
    jvm.org.apache.spark.sql.execution.datasources.v2.LowLatencyClock.setClock(clock)
    return clock
