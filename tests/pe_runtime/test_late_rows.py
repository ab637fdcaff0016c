"""Rows that come behind the watermark are counted."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.pe_runtime.one_driver import Job, application, make_topic, write

from streamgraft_local import Cluster
from streamgraft_pe_runtime.reports import late_rows

pytestmark = pytest.mark.integration


def test_a_row_behind_the_watermark_is_counted(
    session: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    topic, out = make_topic(cluster), make_topic(cluster)

    def windows(rows: DataFrame) -> DataFrame:
        timed = rows.withColumn("time", F.timestamp_seconds("n")).withWatermark("time", "1 minute")
        return timed.groupBy("key", F.window("time", "1 minute")).agg(F.count("*").alias("n"))

    job = Job(application(windows, topic, out), session, cluster, tmp_path)
    try:
        for number, (second, late) in enumerate([(600, 0), (1800, 0), (300, 1)], 1):
            write(cluster, topic, [second])
            job.taken("windows", number)
            assert sum(map(late_rows, job.reports("windows"))) == late
    finally:
        job.stop()
