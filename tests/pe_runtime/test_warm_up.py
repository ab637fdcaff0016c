"""A rehearsal leaves next to nothing to compile for the first batch of a shard."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.pe_runtime.one_driver import Job, make_topic, write

import streamgraft as sg
from streamgraft_common.pe_metadata import ROCKSDB, STATE_STORE_PROVIDER
from streamgraft_local import Cluster

pytestmark = pytest.mark.integration

COUNT = 30
Function = Callable[[DataFrame], DataFrame]


def plain(rows: DataFrame) -> DataFrame:
    """Work without state."""
    return rows.where("n >= 0")


def counted(rows: DataFrame) -> DataFrame:
    """Work with state."""
    return rows.groupBy("key").agg(F.count("*").alias("n"))


@pytest.mark.parametrize(
    ("function", "compilations"),
    # What makes the value of a state from a row, and a row from it, is compiled when there is one.
    [(plain, 0), (counted, 2)],
)
def test_first_batch_finds_its_code_compiled(
    session: SparkSession,
    cluster: Cluster,
    tmp_path: Path,
    function: Function,
    compilations: int,
) -> None:
    topic, out = make_topic(cluster), make_topic(cluster)
    write(cluster, topic, range(COUNT))
    app = sg.Application(f"warm-{function.__name__}")
    numbers = app.kafka_source("numbers", topic=topic, schema="key string, n long")
    worked = app.operator(inputs=numbers, output_mode="update")(function)
    app.kafka_sink("results", input=worked, topic=out, key=["key"], partitions=1)
    job = Job(app, session, cluster, tmp_path, rehearsed=True)
    before = _compilations(session)
    job.start()
    try:
        job.read(out, 1)
    finally:
        job.stop()
    assert _compilations(session) <= before + compilations


def test_a_rehearsal_reads_a_snapshot_of_state_in_rocksdb(
    session: SparkSession, cluster: Cluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing but a warning tells if it can't."""
    app = sg.Application("warm-rocksdb")
    numbers = app.kafka_source("numbers", topic=make_topic(cluster), schema="key string, n long")
    worked = app.operator(inputs=numbers, output_mode="update")(counted)
    app.kafka_sink("results", input=worked, topic=make_topic(cluster), key=["key"], partitions=1)
    session.conf.set(STATE_STORE_PROVIDER, ROCKSDB)
    try:
        Job(app, session, cluster, tmp_path, rehearsed=True)
    finally:
        session.conf.unset(STATE_STORE_PROVIDER)
    assert [record.getMessage() for record in caplog.records] == []


def _compilations(session: SparkSession) -> int:
    jvm: Any = session._jvm
    return int(
        jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME().getCount()
    )
