"""Two regions of width 2 without load, one under each policy: they are narrowed in two minutes."""

from pyspark.sql import DataFrame

import streamgraft as sg

app = sg.Application("outage", trigger_seconds=1.0)

numbers = app.kafka_source("numbers", topic="outage-in", schema="id bigint, key string")

SECONDS = 120
BY_DEMAND = sg.Autoscaling(scale_down_seconds=SECONDS, change_cost_seconds=0)
BY_LAG = sg.Autoscaling(metric="lag-utilization", scale_down_seconds=SECONDS)

with app.parallel("demand", key=["key"], width=2, max_width=2, autoscaling=BY_DEMAND):

    @app.operator(inputs=numbers)
    def worked(rows: DataFrame) -> DataFrame:
        """Pass on every record."""
        return rows.selectExpr("id", "key")


with app.parallel("lag", key=["key"], width=2, max_width=2, autoscaling=BY_LAG):

    @app.operator(inputs=worked)
    def passed(rows: DataFrame) -> DataFrame:
        """Pass on every record."""
        return rows.selectExpr("id", "key")

    app.kafka_sink("results", input=passed, topic="outage-out", key=["key"])
