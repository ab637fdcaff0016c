"""Numbered records through a PE that reads, a region of two channels with state, and a sink.

The benchmark writes name and period into a copy; without a period there is no consistent region.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import streamgraft as sg

NAME = "cuts"
PERIOD_SECONDS = 0.0

app = sg.Application(NAME, trigger_seconds=0.5)

records = app.kafka_source("records", topic=f"{NAME}-in", schema="id bigint, key string")

with app.parallel("work", key=["key"], width=2, max_width=2):

    @app.operator(inputs=records, output_mode="update")
    def counted(rows: DataFrame) -> DataFrame:
        """Count the records of each key."""
        return rows.groupBy("key").agg(F.max("id").alias("id"), F.count("*").alias("count"))


app.kafka_sink("results", input=counted, topic=f"{NAME}-out", key=["key"], partitions=2)
if PERIOD_SECONDS:
    app.consistent_region("all", start=records, period_seconds=PERIOD_SECONDS)
