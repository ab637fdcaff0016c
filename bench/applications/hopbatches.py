"""Records of any size from one PE to another, in micro-batches."""

from pyspark.sql import DataFrame

import streamgraft as sg

app = sg.Application("hopbatches", trigger_seconds=0.1)

records = app.kafka_source(
    "records", topic="bench-in-hopbatches", schema="id bigint, payload string"
)

with app.parallel("far", key=["id"], max_width=1):

    @app.operator(inputs=records)
    def measured(rows: DataFrame) -> DataFrame:
        """Tell of each record what it is, and leave its payload out."""
        return rows.selectExpr("id", "length(payload) AS size")

    app.kafka_sink("results", input=measured, topic="bench-out-hopbatches")
