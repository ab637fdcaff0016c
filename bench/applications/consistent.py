"""Numbered records through a consistent region whose sink makes final what is in a cut.

A PE reads, and each channel counts the records of its keys and puts results aside. The benchmark
writes name, channels, period and folder into a copy.
"""

import json
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import streamgraft as sg

NAME = "consistent"
CHANNELS = 1
PERIOD_SECONDS = 5.0
FOLDER = Path()

app = sg.Application(
    NAME,
    trigger_seconds=0.5,
    spark_conf={
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    },
)

records = app.kafka_source("records", topic=f"{NAME}-in", schema="id bigint, key string")


def staged(what: sg.Batch | sg.Cut) -> Path:
    """Return where batches of a shard wait for their cut."""
    return FOLDER / "staged" / str(what.shard) / what.incarnation


with app.parallel("work", key=["key"], width=CHANNELS, max_width=CHANNELS):

    @app.operator(inputs=records, output_mode="update")
    def counted(rows: DataFrame) -> DataFrame:
        """Count the records of each key."""
        return rows.groupBy("key").agg(F.max("id").alias("id"), F.count("*").alias("count"))

    @app.sink(inputs=counted)
    def results(rows: DataFrame, batch: sg.Batch) -> None:
        """Put the results of a batch aside."""
        found = [row.asDict() for row in rows.collect()]
        if not found:
            return
        staged(batch).mkdir(parents=True, exist_ok=True)
        half = staged(batch) / f".{int(batch)}"
        half.write_text(json.dumps(found))
        half.replace(staged(batch) / str(int(batch)))


@app.on_commit(results)
def publish(cut: sg.Cut) -> None:
    """Make final what is in the cut."""
    for file in staged(cut).glob("[0-9]*"):
        if int(file.name) <= cut.last_batch:
            file.replace(FOLDER / "final" / f"{cut.shard}_{cut.incarnation}_{file.name}")


app.consistent_region(
    "all",
    start=records,
    period_seconds=PERIOD_SECONDS,
    roll_back_on="failure",
)
