"""Numbered records through a parallel region that keeps every id it ever saw as state.

A record with a `count` stands for so many ids from its own on; they become state and nothing else.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import streamgraft as sg

app = sg.Application(
    "state",
    spark_conf={
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        # Snapshots are due soon after the state was built.
        "spark.sql.streaming.stateStore.maintenanceInterval": "5s",
        # A batch has half a million ids at most while the state is built.
        "spark.streamgraft.maxOffsetsPerTrigger": "5000",
    },
)

numbers = app.kafka_source(
    "numbers", topic="bench-in-state", schema="id bigint, key string, count bigint"
)


@app.operator(inputs=numbers, real_time=True)
def records(rows: DataFrame) -> DataFrame:
    """Pass records on at once, so that the region's input has no gaps of its own."""
    return rows


with app.parallel("work", key=["key"], width=1, max_width=8):

    @app.operator(inputs=records, output_mode="update")
    def counted(rows: DataFrame) -> DataFrame:
        """Count each id: a second count of an id would show as a duplicate."""
        last = F.col("id") + F.col("count") - 1
        ids = rows.select(
            "key", F.explode(F.sequence("id", last)).alias("id"), (F.col("count") > 1).alias("mute")
        )
        counts = ids.groupBy("key", "id").agg(F.count("*").alias("n"), F.max("mute").alias("mute"))
        return counts.where("not mute").drop("mute")

    app.kafka_sink("results", input=counted, topic="bench-out-state", key=["key"], partitions=8)
