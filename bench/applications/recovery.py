"""Numbered records through a region of two channels with state, between a source and a sink."""

from pyspark.sql import DataFrame

import streamgraft as sg

app = sg.Application("recovery", trigger_seconds=0.5)

records = app.kafka_source("records", topic="bench-in-recovery", schema="id bigint, key string")

with app.parallel("work", key=["key"], width=2, max_width=2):

    @app.operator(inputs=records, output_mode="update")
    def counted(rows: DataFrame) -> DataFrame:
        """Count each id."""
        return rows.groupBy("key", "id").count()


app.kafka_sink(
    "results", input=counted, topic="bench-out-recovery", key=["key"], partitions=2, apart=True
)
