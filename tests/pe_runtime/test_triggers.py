"""Where in its interval a query is triggered."""

import time
from typing import Any

import pytest
from tests.pe_runtime.one_driver import driver

from streamgraft_local import Cluster
from streamgraft_pe_runtime.triggers import Triggers

SESSION: Any = None


@pytest.mark.parametrize(("now", "left"), [(0.0, 2.0), (3.5, 0.5), (6.0, 2.0)])
def test_spark_triggers_at_the_multiples_of_the_interval(now: float, left: float) -> None:
    """As long as nothing was set."""
    assert Triggers(SESSION, 2.0, share=0.25).seconds_to_next(now) == left


@pytest.mark.integration
def test_a_query_has_its_own_time_in_the_interval(cluster: Cluster) -> None:
    """Spark's executor sees a clock that is fast by the rest, and wakes up by it, too."""
    with driver(cluster, {}) as session:
        jvm: Any = session._jvm
        streaming = jvm.org.apache.spark.sql.execution.streaming
        executor = streaming.runtime.ProcessingTimeExecutor(
            streaming.ProcessingTimeTrigger(1000), jvm.org.apache.spark.util.SystemClock()
        )
        triggers = Triggers(session, 1.0, share=0.25)
        for seconds in (4.0, 2.0):
            triggers.set(executor, seconds)
            clock = executor.clock()
            before = time.time()
            seen = clock.getTimeMillis() / 1000 - seconds * 0.75
            after = time.time()
            assert before - 0.002 <= seen <= after + 0.002
            due = executor.nextBatchTime(clock.getTimeMillis()) / 1000 - seconds * 0.75
            assert triggers.seconds_to_next(due - 0.1) == pytest.approx(0.1, abs=0.002)
            woken_at = clock.waitTillTime(clock.getTimeMillis() + 100) / 1000 - seconds * 0.75
            assert after + 0.09 <= woken_at <= time.time() + 0.002
