"""Numbered records through a stateless parallel region."""

from pyspark.sql import DataFrame

import streamgraft as sg

app = sg.Application("stateless")

numbers = app.kafka_source("numbers", topic="bench-in-stateless", schema="id bigint, key string")


@app.operator(inputs=numbers, real_time=True)
def records(rows: DataFrame) -> DataFrame:
    """Pass records on at once, so that the region's input has no gaps of its own."""
    return rows


with app.parallel("work", key=["key"], width=1, max_width=8):

    @app.operator(inputs=records)
    def worked(rows: DataFrame) -> DataFrame:
        """Pass on every record."""
        return rows.selectExpr("id", "key")

    app.kafka_sink("results", input=worked, topic="bench-out-stateless", key=["key"], partitions=8)
