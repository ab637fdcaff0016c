"""The same numbered records through two regions, in which each of them takes a channel 10 ms."""

from pyspark.sql import DataFrame

import streamgraft as sg

SLEPT = "reflect('java.lang.Thread', 'sleep', 10L) is not null"
"""True, after 10 ms: a channel waits, as for a service, and leaves the CPU to others."""

app = sg.Application("forecast", trigger_seconds=5.0)

numbers = app.kafka_source("numbers", topic="bench-in-forecast", schema="id bigint, key string")

# Days in minutes: one channel less for 20 s is worth a width change.
QUICK = sg.Autoscaling(
    headroom=0.0,
    catch_up_seconds=60,
    change_cost_seconds=10,
    scale_up_seconds=0,
    scale_down_seconds=0,
)


with app.parallel("with-history", key=["key"], width=1, max_width=2, autoscaling=QUICK):

    @app.operator(inputs=numbers)
    def foreseen(rows: DataFrame) -> DataFrame:
        """Pass on every record."""
        return rows.selectExpr("id", "key").where(SLEPT)

    app.kafka_sink("foreseen-results", input=foreseen, topic="bench-out-with-history")


with app.parallel("without-history", key=["key"], width=1, max_width=2, autoscaling=QUICK):

    @app.operator(inputs=numbers)
    def met(rows: DataFrame) -> DataFrame:
        """Pass on every record."""
        return rows.selectExpr("id", "key").where(SLEPT)

    app.kafka_sink("met-results", input=met, topic="bench-out-without-history")
