"""Numbered records through a region in which each of them takes a channel 2.5 ms of waiting."""

from pyspark.sql import DataFrame

import streamgraft as sg

WAITED = "reflect('java.lang.Thread', 'sleep', 2L, 500000) is not null"
"""True, after 2.5 ms: a channel waits, as for a service; the CPU is for Spark and new drivers."""

app = sg.Application(
    "growing",
    trigger_seconds=0.5,
    # Shards move between two batches: half a second of waiting.
    spark_conf={"spark.streamgraft.maxOffsetsPerTrigger": "200"},
)

numbers = app.kafka_source("numbers", topic="bench-in-growing", schema="id bigint, key string")


@app.operator(inputs=numbers, real_time=True)
def records(rows: DataFrame) -> DataFrame:
    """Pass records on at once, whatever waits."""
    return rows


# What a jump brings is to be worked off at once, so the width grows in one step.
AT_ONCE = sg.Autoscaling(
    max_width=4,
    headroom=0.0,
    catch_up_seconds=5,
    change_cost_seconds=0,
    scale_up_seconds=0,
    scale_down_seconds=10,
)

with app.parallel("work", key=["key"], width=1, max_width=8, autoscaling=AT_ONCE):

    @app.operator(inputs=records)
    def worked(rows: DataFrame) -> DataFrame:
        """Pass on every record."""
        return rows.selectExpr("id", "key").where(WAITED)

    app.kafka_sink("results", input=worked, topic="bench-out-growing", key=["key"], partitions=8)
