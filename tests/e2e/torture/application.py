"""Numbered records through a parallel region that counts and sums them by key."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import streamgraft as sg

EXTENDED = False
"""What edits change: with it there is one more operator, and one more sink, behind the region."""

# Small batches: a backlog is many of them, and kills hit some.
app = sg.Application(
    "torture", trigger_seconds=0.5, spark_conf={"spark.streamgraft.maxOffsetsPerTrigger": "500"}
)

records = app.kafka_source("records", topic="torture-in", schema="id bigint, key string")

with app.parallel("work", key=["key"], width=1, max_width=3):

    @app.operator(inputs=records, output_mode="update")
    def totals(rows: DataFrame) -> DataFrame:
        """Count the records of each key and sum their ids."""
        return rows.groupBy("key").agg(F.count("*").alias("n"), F.sum("id").alias("total"))


app.kafka_sink("results", input=totals, topic="torture-out", key=["key"], partitions=3, apart=True)
app.kafka_sink(
    "loose",
    input=totals,
    topic="torture-loose",
    key=["key"],
    partitions=3,
    delivery="at_least_once",
)

if EXTENDED:

    @app.operator(inputs=totals, output_mode="update")
    def tens(rows: DataFrame) -> DataFrame:
        """Return each tenth count."""
        return rows.where("n % 10 = 0")

    app.kafka_sink("milestones", input=tens, topic="torture-tens", key=["key"], partitions=3)
