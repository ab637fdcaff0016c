"""Numbered records through a PE that passes them on, and a region whose channels write them.

With state between real-time PEs (`hybrid`) a third PE writes them.
The benchmark writes the region's kind and its largest width into a copy.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import streamgraft as sg

KIND = "state"
MAX_WIDTH = 1
REAL_TIME = KIND == "realtime"
AROUND = KIND in ("realtime", "hybrid")
"""Outside of the region in real time; hybrid: keeps state inside, in micro-batches."""
NAME = f"range{KIND}{MAX_WIDTH}"

app = sg.Application(NAME, trigger_seconds=1.0)

numbers = app.kafka_source("numbers", topic=f"{NAME}-in", schema="id bigint, key string")


@app.operator(inputs=numbers, real_time=AROUND)
def records(rows: DataFrame) -> DataFrame:
    """Pass records on."""
    return rows.selectExpr("id", "key")


with app.parallel("work", key=["key"], width=1, max_width=MAX_WIDTH):

    @app.operator(inputs=records, output_mode="update", real_time=REAL_TIME)
    def worked(rows: DataFrame) -> DataFrame:
        """Count the records of each key, or pass on every record."""
        if KIND in ("state", "hybrid"):
            return rows.groupBy("key").agg(F.count("*").alias("n"), F.max("id").alias("id"))
        return rows.selectExpr("id", "key")


@app.operator(inputs=worked, real_time=AROUND)
def results(rows: DataFrame) -> DataFrame:
    """Pass results on."""
    return rows.selectExpr("id", "key")


app.kafka_sink("out", input=results, topic=f"{NAME}-out", key=["key"], partitions=8)
