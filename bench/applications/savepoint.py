"""A text of some size for each key, in a region whose key groups are divided anew."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import streamgraft as sg

app = sg.Application(
    "savepoint",
    trigger_seconds=0.5,
    spark_conf={
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    },
)

records = app.kafka_source(
    "records", topic="bench-in-savepoint", schema="id bigint, key string, text string"
)

with app.parallel("work", key=["key"], width=2, max_width=4):

    @app.operator(inputs=records, output_mode="update")
    def kept(rows: DataFrame) -> DataFrame:
        """Keep the last id and the text of each key."""
        last = rows.groupBy("key").agg(F.max("id").alias("id"), F.max("text").alias("text"))
        # What is not read Spark does not keep, either.
        return last.select("id", "key", F.length("text").alias("size"))

    app.kafka_sink("results", input=kept, topic="bench-out-savepoint", key=["key"], partitions=1)
