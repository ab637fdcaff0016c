"""When Spark triggers a query: its interval, and where in the interval.

Spark triggers at the whole multiples of the interval since 1970, so all queries of a region would
run at once: each batch takes as long as all of them then, and a query that starts behind its old
owner's batch meets those of all others. So each shard has a time of its own within the interval,
the same with every owner.
"""

from typing import Any

from pyspark.sql import SparkSession

from streamgraft_pe_runtime import java_classes

STAGGERED_CLOCK = """
public class StaggeredClock implements org.apache.spark.util.Clock {
    private final org.apache.spark.util.Clock clock = new org.apache.spark.util.SystemClock();
    private long interval = 1, stagger = 0, began = clock.getTimeMillis();
    public synchronized void set(long interval, long stagger) {
        this.interval = interval;
        this.stagger = stagger;
    }
    public long getTimeMillis() { return clock.getTimeMillis(); }
    public long nanoTime() { return clock.nanoTime(); }
    /** Waits for as long as it is until then by now: a clock that is set back holds up nothing. */
    public long waitTillTime(long ignored) {
        long end = clock.nanoTime() + 1000000L * Math.min(next() - getTimeMillis(), interval());
        try {
            for (long left = end - clock.nanoTime(); left > 0; left = end - clock.nanoTime()) {
                Thread.sleep(Math.min(left / 1000000L + 1, 25));
            }
        } catch (InterruptedException e) {
            org.apache.spark.unsafe.Platform.throwException(e);
        }
        long now = getTimeMillis();
        begin(now);
        return now;
    }
    private synchronized long interval() { return interval; }
    /** The first trigger behind the beginning of the batch that has just ended. */
    private synchronized long next() {
        return began + interval - Math.floorMod(began - stagger, interval);
    }
    private synchronized void begin(long now) { began = now; }
}
"""


class Triggers:
    """The triggers of one query. `share`: where in each interval they are to be, from 0 to 1."""

    def __init__(self, session: SparkSession, seconds: float, share: float = 0.0) -> None:
        self._session = session
        self._share = share
        self._clock: Any = None
        self.interval_seconds = seconds

    def seconds_to_next(self, now: float) -> float:
        """Return the seconds to the next trigger. `now`: Unix time."""
        interval = self.interval_seconds
        return interval - (now - self._share * interval) % interval

    def set(self, executor: Any, seconds: float) -> None:
        """Have Spark's executor of a running query trigger at these intervals from its next on.

        Spark has no call for it and would have to be restarted; but its executor waits by a clock
        for the time that it has found before the batch. Ours finds the time itself, and only when
        it is to wait: what is set within a batch is true of the very next trigger.
        """
        if self._clock is None:
            self._clock = java_classes.instance(self._session, STAGGERED_CLOCK, "StaggeredClock")
        self._clock.set(round(seconds * 1000), round(self._share * seconds * 1000))
        _field(executor, "clock").set(executor, self._clock)
        _field(executor, "intervalMs").setLong(executor, round(seconds * 1000))
        self.interval_seconds = seconds


def _field(executor: Any, name: str) -> Any:
    field = executor.getClass().getDeclaredField(name)
    field.setAccessible(True)
    return field
