"""The same numbered records through two regions, in which each of them takes a channel 10 ms."""

import time
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

import streamgraft as sg

RECORD_SECONDS = 0.01

app = sg.Application("forecast", trigger_seconds=2.0)

numbers = app.kafka_source("numbers", topic="bench-in-forecast", schema="id bigint, key string")

# Quick, as everything in minutes: a dip that lasts 20 s longer than it took to notice it pays for
# two changes.
QUICK = sg.Autoscaling(
    headroom=0.0,
    catch_up_seconds=30,
    change_cost_seconds=15,
    scale_up_seconds=0,
    scale_down_seconds=0,
)


def slowly(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches, after as long as their records take."""
    for batch in batches:
        time.sleep(RECORD_SECONDS * batch.num_rows)
        yield batch


with app.parallel("with-history", key=["key"], width=1, max_width=4, autoscaling=QUICK):

    @app.operator(inputs=numbers)
    def foreseen(rows: DataFrame) -> DataFrame:
        """Pass on every record."""
        return rows.select("id", "key").mapInArrow(slowly, "id bigint, key string")

    app.kafka_sink("foreseen-results", input=foreseen, topic="bench-out-with-history", key=["key"])


with app.parallel("without-history", key=["key"], width=1, max_width=4, autoscaling=QUICK):

    @app.operator(inputs=numbers)
    def met(rows: DataFrame) -> DataFrame:
        """Pass on every record."""
        return rows.select("id", "key").mapInArrow(slowly, "id bigint, key string")

    app.kafka_sink("met-results", input=met, topic="bench-out-without-history", key=["key"])
