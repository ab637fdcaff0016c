"""Numbered records through a region of two channels with state, both of which write one partition.

As in batches that are too large to be held in memory, rows are sent while more are computed. Else a
transaction is open for a few milliseconds only, and nothing that happens to a channel meets one.
"""

from pyspark.sql import DataFrame

import streamgraft as sg

app = sg.Application(
    "neighbours",
    trigger_seconds=0.5,
    spark_conf={"spark.datasource.exactly-once-kafka.bufferBytes": "1"},
)

records = app.kafka_source("records", topic="bench-in-neighbours", schema="id bigint, key string")

with app.parallel("work", key=["key"], width=2, max_width=2):

    @app.operator(inputs=records, output_mode="update")
    def counted(rows: DataFrame) -> DataFrame:
        """Count each id, and take a millisecond for each row."""
        pause = "java_method('java.lang.Thread', 'sleep', 1L) IS NOT NULL"
        return rows.groupBy("key", "id").count().where(pause)


app.kafka_sink("shared", input=counted, topic="bench-shared", key=["key"], partitions=1)
app.kafka_sink(
    "results", input=counted, topic="bench-out-neighbours", key=["key"], partitions=2, apart=True
)
