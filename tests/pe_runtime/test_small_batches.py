"""What a batch of few records is spared, and that the first of a query is one."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.pe_runtime.one_driver import Job, make_topic, write

import streamgraft as sg
from streamgraft_local import Cluster
from streamgraft_pe_runtime import hadoop_settings
from streamgraft_pe_runtime.batch_size import FIRST

pytestmark = pytest.mark.integration

FEW, MANY = 30, 3000
COMPILED = "*("
"""What Spark writes before operators of a plan that are compiled together."""
LATE_VERSIONS = 50
"""Behind so many without a snapshot Spark would force one in each batch, if it were asked to."""


@pytest.mark.parametrize("stage", ["counted"], indirect=True)
async def test_a_batch_writes_what_has_changed_not_all_of_the_state(
    stage: Any, load: Callable[[int], Any], output: Any
) -> None:
    first = await stage.start(0, [0, 1])
    await first.running(0, 1)
    source = load(50)
    folder = stage.folder / "checkpoints" / stage.metadata().checkpoint_path
    deltas: list[Path] = []
    while len(deltas) < 2 * (LATE_VERSIONS + 10):
        output.read(1.0)
        deltas = list(folder.rglob("*.delta"))
    source.stop()
    snapshots = list(folder.rglob("*.snapshot"))
    assert len(snapshots) <= len(deltas) // 10


def test_a_batch_is_interpreted_unless_it_has_many_records(
    session: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    topic, out = make_topic(cluster), make_topic(cluster)
    app = sg.Application("small")
    numbers = app.kafka_source("numbers", topic=topic, schema="key string, n long")

    @app.operator(inputs=numbers, output_mode="update")
    def counted(rows: DataFrame) -> DataFrame:
        return rows.groupBy("key").agg(F.count("*").alias("n"))

    app.kafka_sink("results", input=counted, topic=out, key=["key"], partitions=1)
    write(cluster, topic, range(FEW))
    job = Job(app, session, cluster, tmp_path)
    try:
        job.read(out, 1)
        assert COMPILED not in plan(job)
        job.stop()
        written = job.size(out)
        write(cluster, topic, range(MANY))
        job.start()
        job.read(out, written + 1)
        assert COMPILED not in plan(job)
        (running,) = job.queries.values()
        running.limit_batches(MANY)
        records: list[int] = []
        while sum(records) < MANY:
            assert running.failure() is None
            time.sleep(0.1)
            records = [report["numInputRows"] for report in running.reports(0)]
        assert records[0] == FIRST
        assert max(records) > MANY / 2
        assert COMPILED in plan(job)
    finally:
        job.stop()


def plan(job: Job) -> str:
    """Return how the last batch of the only PE was planned."""
    (running,) = job.queries.values()
    explained: Any = running._handle
    return str(explained.explainInternal(False))


def test_settings_travel_without_where_they_are_from(session: SparkSession) -> None:
    def size() -> int:
        jvm: Any = session._jvm
        stream = jvm.java.io.ByteArrayOutputStream()
        settings: Any = session._jsparkSession
        settings.sessionState().newHadoopConf().write(jvm.java.io.DataOutputStream(stream))
        return int(stream.size())

    conf: Any = session.sparkContext._jsc.hadoopConfiguration()
    known = conf.get("io.file.buffer.size")
    before = size()
    hadoop_settings.forget_origins(session)
    assert size() < 0.8 * before
    assert conf.get("io.file.buffer.size") == known
