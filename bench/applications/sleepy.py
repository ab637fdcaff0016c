"""Numbered records through a region that sleeps as soon as none come."""

from pyspark.sql import DataFrame

import streamgraft as sg

app = sg.Application("sleepy", trigger_seconds=0.5)

records = app.kafka_source("records", topic="bench-in-sleepy", schema="id bigint, key string")

SLEEPY = sg.Autoscaling(
    min_width=0, change_cost_seconds=0, scale_up_seconds=0, scale_down_seconds=0
)

with app.parallel("work", key=["key"], width=1, max_width=2, autoscaling=SLEEPY):

    @app.operator(inputs=records)
    def worked(rows: DataFrame) -> DataFrame:
        """Pass on every record."""
        return rows.selectExpr("id", "key")

    app.kafka_sink("results", input=worked, topic="bench-out-sleepy", key=["key"], partitions=2)
