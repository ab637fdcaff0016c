"""Numbered records through a region whose operator runs Python code."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import streamgraft as sg

VERSION = 0
"""What edits change: only `worked` uses it."""

app = sg.Application("swapping", trigger_seconds=0.5)

records = app.kafka_source("records", topic="bench-in-swapping", schema="id bigint, key string")

with app.parallel("work", key=["key"], width=2, max_width=2):

    @app.operator(inputs=records)
    def worked(rows: DataFrame) -> DataFrame:
        """Pass on every record, through a Python worker."""

        def same(number: int) -> int:
            return number + VERSION - VERSION

        return rows.withColumn("id", F.udf(same, "bigint")("id"))


@app.operator(inputs=worked)
def shown(rows: DataFrame) -> DataFrame:
    """Pass on every record."""
    return rows


app.kafka_sink("results", input=shown, topic="bench-out-swapping", key=["key"], partitions=2)
