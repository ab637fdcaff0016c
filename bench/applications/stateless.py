"""Numbered records through a stateless parallel region."""

from pyspark.sql import DataFrame

import streamgraft as sg

app = sg.Application("stateless", trigger_seconds=0.5)

records = app.kafka_source("records", topic="bench-in-stateless", schema="id bigint, key string")

with app.parallel("work", key=["key"], width=1, max_width=4):

    @app.operator(inputs=records)
    def worked(rows: DataFrame) -> DataFrame:
        """Pass on every record."""
        return rows.selectExpr("id", "key")

    app.kafka_sink("results", input=worked, topic="bench-out-stateless", key=["key"], partitions=4)
