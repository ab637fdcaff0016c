"""Numbered records through a stateless parallel region."""

from pyspark.sql import DataFrame

import streamgraft as sg

NAME = "stateless"
MAX_WIDTH = 8
"""The benchmark writes others into a copy."""

app = sg.Application(NAME)

numbers = app.kafka_source("numbers", topic=f"bench-in-{NAME}", schema="id bigint, key string")


@app.operator(inputs=numbers, real_time=True)
def records(rows: DataFrame) -> DataFrame:
    """Pass records on at once, so that the region's input has no gaps of its own."""
    return rows


with app.parallel("work", key=["key"], width=1, max_width=MAX_WIDTH):

    @app.operator(inputs=records)
    def worked(rows: DataFrame) -> DataFrame:
        """Pass on every record."""
        return rows.selectExpr("id", "key")

    app.kafka_sink(
        "results", input=worked, topic=f"bench-out-{NAME}", key=["key"], partitions=MAX_WIDTH
    )
