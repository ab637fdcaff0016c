"""Rows that come behind the watermark are counted."""

import time
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.pe_runtime.one_driver import Job, make_topic, write

import streamgraft as sg
from streamgraft_local import Cluster
from streamgraft_pe_runtime.reports import late_rows

pytestmark = pytest.mark.integration

SECONDS = 60.0


def test_a_row_behind_the_watermark_is_counted(
    session: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    topic, out = make_topic(cluster), make_topic(cluster)
    app = sg.Application("late")
    numbers = app.kafka_source("numbers", topic=topic, schema="key string, n long")

    @app.operator(inputs=numbers)
    def windows(rows: DataFrame) -> DataFrame:
        timed = rows.withColumn("time", F.timestamp_seconds("n")).withWatermark("time", "1 minute")
        return timed.groupBy("key", F.window("time", "1 minute")).agg(F.count("*").alias("n"))

    app.kafka_sink("results", input=windows, topic=out, key=["key"], partitions=1)
    job = Job(app, session, cluster, tmp_path)
    try:
        for number, (second, late) in enumerate([(600, 0), (1800, 0), (300, 1)], 1):
            write(cluster, topic, [second])
            deadline = time.monotonic() + SECONDS
            while sum(report["numInputRows"] for report in job.reports("windows")) < number:
                assert time.monotonic() < deadline
                time.sleep(0.1)
            assert sum(map(late_rows, job.reports("windows"))) == late
    finally:
        job.stop()
