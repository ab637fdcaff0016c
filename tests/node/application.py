"""Numbered records through a region with state: the job of `make test-node`."""

from pyspark.sql import DataFrame

import streamgraft as sg

app = sg.Application("numbers", trigger_seconds=1.0)

records = app.kafka_source("records", topic="node-in", schema="id bigint, key string")

with app.parallel("work", key=["key"], width=1, max_width=4):

    @app.operator(inputs=records, output_mode="update")
    def counted(rows: DataFrame) -> DataFrame:
        """Count each id."""
        return rows.groupBy("key", "id").count()

    app.kafka_sink("results", input=counted, topic="node-out", key=["key"], partitions=4)
