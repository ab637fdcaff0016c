"""Adds up clicks that other jobs publish (docs/use/import-export.md)."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import streamgraft as sg

app = sg.Application("totals")
clicks = app.import_stream(
    "clicks",
    subscription='kind == "click" && version >= 2 && "eu" in tags',
    filter="millis > 0",
    schema="user string, millis bigint",
)

with app.parallel("users", key=["user"], max_width=4, autoscaling=sg.Autoscaling(max_width=4)):

    @app.operator(inputs=clicks, output_mode="update")
    def totals(rows: DataFrame) -> DataFrame:
        """Return the time of each user."""
        return rows.groupBy("user").agg(F.sum("millis").alias("millis"))


app.kafka_sink("result", input=totals, topic="shared-totals", key=["user"])
