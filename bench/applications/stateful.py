"""Numbered records through a parallel region that keeps every id it ever saw as state."""

from pyspark.sql import DataFrame

import streamgraft as sg

app = sg.Application("stateful", trigger_seconds=0.5)

records = app.kafka_source("records", topic="bench-in-stateful", schema="id bigint, key string")

with app.parallel("work", key=["key"], width=1, max_width=4):

    @app.operator(inputs=records, output_mode="update")
    def counted(rows: DataFrame) -> DataFrame:
        """Count each id: a second count of an id would show as a duplicate."""
        return rows.groupBy("key", "id").count()

    app.kafka_sink("results", input=counted, topic="bench-out-stateful", key=["key"], partitions=4)
