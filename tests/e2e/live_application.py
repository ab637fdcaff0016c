"""Numbered records through a region that may sleep, then through one that is only advised."""

from pyspark.sql import DataFrame

import streamgraft as sg

app = sg.Application("live", trigger_seconds=1.0)

numbers = app.kafka_source("numbers", topic="live-in", schema="id bigint, key string")


SLEEPY = sg.Autoscaling(
    min_width=0, scale_up_seconds=0, scale_down_seconds=0, change_cost_seconds=0
)
ADVISED = sg.Autoscaling(
    mode="advise", scale_up_seconds=0, scale_down_seconds=0, change_cost_seconds=0
)

with app.parallel("sleepy", key=["key"], max_width=2, autoscaling=SLEEPY):

    @app.operator(inputs=numbers)
    def worked(rows: DataFrame) -> DataFrame:
        """Pass on every record."""
        return rows.selectExpr("id", "key")


with app.parallel(
    "advised",
    key=["key"],
    width=2,
    max_width=2,
    autoscaling=ADVISED,
):

    @app.operator(inputs=worked)
    def passed(rows: DataFrame) -> DataFrame:
        """Pass on every record."""
        return rows.selectExpr("id", "key")

    app.kafka_sink("results", input=passed, topic="live-out", key=["key"])
