"""Two regions one after the other: the second takes less than one channel of the first can send."""

import time
from collections.abc import Iterator

import pandas as pd
from pyspark.sql import DataFrame

import streamgraft as sg

# Batches of some seconds, however much waits.
SMALL = {"spark.streamgraft.maxOffsetsPerTrigger": "300"}
app = sg.Application("bottleneck", trigger_seconds=1.0, spark_conf=SMALL)

numbers = app.kafka_source("numbers", topic="bottleneck-in", schema="id bigint, key string")

AT_ONCE = sg.Autoscaling(scale_up_seconds=0, scale_down_seconds=0, change_cost_seconds=0)


def _slowly(seconds: float, rows: DataFrame) -> DataFrame:
    def work(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            time.sleep(seconds * len(frame))
            yield frame

    return rows.mapInPandas(work, rows.schema)


with app.parallel("above", key=["key"], max_width=4, autoscaling=AT_ONCE):

    @app.operator(inputs=numbers)
    def prepared(rows: DataFrame) -> DataFrame:
        """Take 10 ms a record: 100 a second in each channel."""
        return _slowly(0.01, rows)


with app.parallel("below", key=["key"], max_width=1, autoscaling=AT_ONCE):

    @app.operator(inputs=prepared)
    def answered(rows: DataFrame) -> DataFrame:
        """Take 20 ms a record: 50 a second in its only channel."""
        return _slowly(0.02, rows)

    app.kafka_sink("results", input=answered, topic="bottleneck-out", key=["key"])
