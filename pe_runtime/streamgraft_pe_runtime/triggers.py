"""When Spark triggers a query: its interval, and where in the interval.

Spark triggers at the whole multiples of the interval since 1970, so all queries of a region would
run at once: each batch takes as long as all of them then, and a query that starts behind its old
owner's batch meets those of all others. So each shard has a time of its own within the interval,
the same with every owner.
"""

from typing import Any

from pyspark.sql import SparkSession

from streamgraft_pe_runtime import java_classes

_FAST_CLOCK = """
public class FastClock implements org.apache.spark.util.Clock {
    private final org.apache.spark.util.Clock clock = new org.apache.spark.util.SystemClock();
    private volatile long fast = 0;
    public void setFast(long millis) { fast = millis; }
    public long getTimeMillis() { return clock.getTimeMillis() + fast; }
    public long nanoTime() { return clock.nanoTime(); }
    public long waitTillTime(long time) { return clock.waitTillTime(time - fast) + fast; }
}
"""


class Triggers:
    """The triggers of one query. `share`: where in each interval they are to be, from 0 to 1."""

    def __init__(self, session: SparkSession, seconds: float, share: float = 0.0) -> None:
        self._session = session
        self._share = share
        self._clock: Any = None
        self._fast = 0.0
        self.interval_seconds = seconds

    def seconds_to_next(self, now: float) -> float:
        """Return the seconds to the next trigger. `now`: Unix time."""
        return self.interval_seconds - (now + self._fast) % self.interval_seconds

    def set(self, executor: Any, seconds: float) -> None:
        """Have Spark's executor of a running query trigger at these intervals from its next on.

        Spark has no call for it and would have to be restarted; but its executor reads these
        fields before each trigger. The next may come at once: a clock that is fast, rather than
        late, has it never wait longer for a trigger that it found by its old clock.
        """
        fast = (1 - self._share) % 1 * seconds
        if self._clock is None:
            clock = java_classes.instance(self._session, _FAST_CLOCK, "FastClock")
            _field(executor, "clock").set(executor, clock)
            self._clock = clock
        self._clock.setFast(round(fast * 1000))
        _field(executor, "intervalMs").setLong(executor, round(seconds * 1000))
        self.interval_seconds, self._fast = seconds, fast


def _field(executor: Any, name: str) -> Any:
    field = executor.getClass().getDeclaredField(name)
    field.setAccessible(True)
    return field
