"""Numbered records through a parallel region, counted and summed by key."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import streamgraft as sg

EXTENDED = False
"""What edits change: with it there is one more operator, and one more sink, behind the region."""
KIND = "joint"
"""What the region runs. joint: one query per channel; rocksdb: the same, with state in RocksDB;
event-time: one query per shard, because of a watermark; real-time: no state, in real time;
real-time-loose: the same at least once, so that repeats are dropped behind it."""

# Small batches: a backlog is many of them, and kills hit some.
conf = {"spark.streamgraft.maxOffsetsPerTrigger": "500"}
if KIND == "rocksdb":
    conf |= {
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    }
app = sg.Application("torture", trigger_seconds=0.5, spark_conf=conf)

records = app.kafka_source("records", topic="torture-in", schema="id bigint, key string")


def summed(rows: DataFrame) -> DataFrame:
    """Count the records of each key and sum their ids."""
    return rows.groupBy("key").agg(F.count("*").alias("n"), F.sum("id").alias("total"))


with app.parallel("work", key=["key"], width=1, max_width=3):
    if KIND.startswith("real-time"):

        @app.operator(
            inputs=records,
            real_time=True,
            delivery="at_least_once" if "loose" in KIND else "exactly_once",
        )
        def passed(rows: DataFrame) -> DataFrame:
            """Pass records on; they are counted behind the region."""
            return rows.where("id >= 0")

    else:

        @app.operator(inputs=records, output_mode="update")
        def totals(rows: DataFrame) -> DataFrame:
            """Count and sum in the region."""
            if KIND == "event-time":
                rows = rows.withColumn("at", F.current_timestamp()).withWatermark("at", "1 hour")
            return summed(rows)


if KIND.startswith("real-time"):

    @app.operator(inputs=passed, output_mode="update")
    def totals(rows: DataFrame) -> DataFrame:
        """Count and sum behind the region."""
        return summed(rows)


app.kafka_sink("results", input=totals, topic="torture-out", key=["key"], partitions=3, apart=True)
app.kafka_sink(
    "loose",
    input=totals,
    topic="torture-loose",
    key=["key"],
    partitions=3,
    delivery="at_least_once",
)

if EXTENDED:

    @app.operator(inputs=totals, output_mode="update")
    def tens(rows: DataFrame) -> DataFrame:
        """Return each tenth count."""
        return rows.where("n % 10 = 0")

    app.kafka_sink("milestones", input=tens, topic="torture-tens", key=["key"], partitions=3)
