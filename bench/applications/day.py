"""Numbered records through a region in which each of them takes a channel 10 ms.

The benchmark writes the policy that sets the region's width into a copy.
"""

from typing import Literal

from pyspark.sql import DataFrame

import streamgraft as sg

POLICY: Literal["demand", "lag-utilization", "cpu"] = "demand"
NAME = "day" + POLICY.replace("-", "")
COMPUTED = "sha2(repeat(key, 45000), 512) is not null"
"""True, after about 2 ms of a core."""
WAITED = "reflect('java.lang.Thread', 'sleep', 8L) is not null"
"""True, after 8 ms: a channel waits, as for a service, and leaves the CPU to others."""

app = sg.Application(NAME, trigger_seconds=1.0)

numbers = app.kafka_source("numbers", topic=f"{NAME}-in", schema="id bigint, key string")


def wanted() -> sg.Autoscaling | None:
    """Return how the region scales itself: not at all if an HPA of the benchmark's own does it.

    A day is an hour: a need must last for minutes of it, as it must in a day of 24 hours. All else
    is the default, and a channel works off the default's lag threshold in ten seconds.
    """
    if POLICY == "cpu":
        return None
    return sg.Autoscaling(metric=POLICY, max_width=6, scale_up_seconds=10, scale_down_seconds=30)


with app.parallel("work", key=["key"], width=1, max_width=12, autoscaling=wanted()):

    @app.operator(inputs=numbers)
    def worked(rows: DataFrame) -> DataFrame:
        """Pass on every record."""
        return rows.selectExpr("id", "key").where(f"{COMPUTED} and {WAITED}")

    app.kafka_sink("results", input=worked, topic=f"{NAME}-out", key=["key"], partitions=1)
