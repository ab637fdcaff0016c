"""What a batch of few records is spared."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.pe_runtime.one_driver import Job, application, make_topic, write

from streamgraft_local import Cluster
from streamgraft_pe_runtime import hadoop_settings

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
    deadline = time.monotonic() + 240
    while len(deltas) < 2 * (LATE_VERSIONS + 10):
        assert first.process.poll() is None, first.log.read_text()[-4000:]
        assert time.monotonic() < deadline, len(deltas)
        output.read(1.0)
        deltas = list(folder.rglob("*.delta"))
    source.stop()
    snapshots = list(folder.rglob("*.snapshot"))
    assert len(snapshots) <= len(deltas) // 10


def test_a_batch_is_interpreted_unless_it_has_many_records(
    session: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    topic, out = make_topic(cluster), make_topic(cluster)

    def counted(rows: DataFrame) -> DataFrame:
        return rows.groupBy("key").agg(F.count("*").alias("n"))

    write(cluster, topic, range(FEW))
    job = Job(application(counted, topic, out, "update"), session, cluster, tmp_path)
    try:
        job.read(out, 1)
        assert COMPILED not in plan(job)
        job.stop()
        written = job.size(out)
        write(cluster, topic, range(MANY))
        job.start()
        job.read(out, written + 1)
        assert COMPILED in plan(job)
    finally:
        job.stop()


KEYS = {
    "decimal": "if(k = 0, null, cast(k as decimal(38, 10)) / 7)",
    "short_decimal": "if(k = 1, null, cast(k as decimal(10, 2)))",
    "struct": "if(k = 2, null, struct(if(k = 3, null, k), if(k = 4, null, string(k)), 1Y))",
    "array": "if(k = 5, null, array(string(k), null, ''))",
    "numbers": "array(k, null, k)",
    "decimals": "array(cast(k as decimal(38, 3)), null)",
    "double": "case k when 0 then double(-0.0) when 1 then double(0.0) else double('NaN') end",
    "float": "if(k = 1, float('-0.0'), float(k))",
    "text": "case k when 0 then null when 1 then '' else repeat('x', int(k)) end",
    "binary": "if(k = 6, null, cast(string(k) as binary))",
    "time": "timestamp_seconds(k)",
    "day": "date_add(date '2000-01-01', int(k))",
    "flag": "if(k = 7, null, k % 2 = 0)",
    "small": "struct(tinyint(k) as a, smallint(k) as b, struct(boolean(k) as d) as c)",
    "interval": "make_dt_interval(int(k))",
}
"""SQL of columns of many types, some of whose values are null, from a number k below 8."""
DIFFERENT = 8


def test_keys_of_state_are_the_same_interpreted_and_compiled(
    session: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    """State finds a key by its bytes, so both ways have to make the same of them."""
    topic, out = make_topic(cluster), make_topic(cluster)

    def counted(rows: DataFrame) -> DataFrame:
        keyed = rows.selectExpr("key", f"n % {DIFFERENT} as k")
        keyed = keyed.selectExpr(*(f"{sql} as {name}" for name, sql in KEYS.items()))
        return keyed.groupBy(*KEYS).agg(F.count("*").alias("n"), F.lit("a").alias("key"))

    write(cluster, topic, range(FEW))
    job = Job(application(counted, topic, out, "update"), session, cluster, tmp_path)
    try:
        job.taken("counted", FEW)
        assert COMPILED not in plan(job)
        job.stop()
        write(cluster, topic, range(MANY))
        job.start()
        job.taken("counted", MANY)
        assert COMPILED in plan(job)
        (operator,) = job.reports("counted")[-1]["stateOperators"]
        assert operator["numRowsTotal"] == DIFFERENT
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
