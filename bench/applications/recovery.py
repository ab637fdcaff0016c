"""Numbered records through a region of two channels with state, between a source and a sink."""

from pyspark.sql import DataFrame

import streamgraft as sg

app = sg.Application(
    "recovery",
    trigger_seconds=0.5,
    # As in batches that are too large to be held in memory, rows are sent while more are computed.
    # Else a transaction is open for a few milliseconds only, and no strike meets one.
    spark_conf={"spark.datasource.exactly-once-kafka.bufferBytes": "1"},
)

records = app.kafka_source("records", topic="bench-in-recovery", schema="id bigint, key string")

with app.parallel("work", key=["key"], width=2, max_width=2):

    @app.operator(inputs=records, output_mode="update")
    def counted(rows: DataFrame) -> DataFrame:
        """Count each id, and take a millisecond for each row."""
        pause = "java_method('java.lang.Thread', 'sleep', 1L) IS NOT NULL"
        return rows.groupBy("key", "id").count().where(pause)


# In the channels: both write its one partition.
app.kafka_sink("shared", input=counted, topic="bench-shared-recovery", key=["key"], partitions=1)
app.kafka_sink(
    "results", input=counted, topic="bench-out-recovery", key=["key"], partitions=2, apart=True
)
