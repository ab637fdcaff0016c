"""Applications from their code to records: built, planned into PEs, and run, all in one driver."""

import json
import os
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.pe_runtime.one_driver import KEYS, SLOTS, Job, make_topic, rows, write

import streamgraft as sg
from streamgraft_local import Cluster
from streamgraft_pe_runtime import query
from streamgraft_pe_runtime.real_time import BATCH_SECONDS
from streamgraft_pe_runtime.slot_check import NotEnoughSlots

pytestmark = pytest.mark.integration

COUNT = 40


Run = Callable[[sg.Application], Job]


@pytest.fixture
def run(session: SparkSession, cluster: Cluster, tmp_path: Path) -> Iterator[Run]:
    """Runs an application; stopped at the end."""
    jobs: list[Job] = []

    def start(app: sg.Application) -> Job:
        jobs.append(Job(app, session, cluster, tmp_path))
        return jobs[-1]

    yield start
    for job in jobs:
        job.stop()


@pytest.fixture
def topic(cluster: Cluster) -> str:
    """A topic of three partitions with numbered records, keys and a header."""
    name = make_topic(cluster)
    write(cluster, name, range(COUNT))
    return name


def next_trigger(running: query.ShardQuery) -> float:
    """Return when Spark would trigger a query again that was triggered at time 0."""
    executor = running._handle.streamingQuery().triggerExecutor()
    return float(executor.nextBatchTime(0)) / 1000


def test_raw_records_go_three_ways(run: Run, topic: str) -> None:
    """One PE with a raw source: a copy with keys and headers, and both parts of a split."""
    app = sg.Application("raw")
    records = app.kafka_source("records", topic=topic, format="raw")
    app.kafka_sink("copy", input=records, topic=f"{topic}-copy", format="raw")

    @app.operator(inputs=records)
    def numbers(records: DataFrame) -> DataFrame:
        row = F.from_json(F.col("value").cast("string"), "key string, n long")
        return records.select(row.alias("row")).select("row.*")

    app.split("parity", input=numbers, outputs={"even": "n % 2 = 0", "third": "n % 3 = 0"})
    app.kafka_sink("evens", input="even", topic=f"{topic}-even", key=["key"])
    app.kafka_sink("thirds", input="third", topic=f"{topic}-third", key=["key", "n"])
    job = run(app)
    assert len(job.pes) == 1
    copies = {
        int(m.headers()[0][1]): (m.key(), m.value()) for m in job.read(f"{topic}-copy", COUNT)
    }
    assert copies == {
        n: (f"k{n % KEYS}".encode(), json.dumps({"key": f"k{n % KEYS}", "n": n}).encode())
        for n in range(COUNT)
    }
    evens = job.read(f"{topic}-even", COUNT // 2)
    assert sorted(row["n"] for row in rows(evens)) == list(range(0, COUNT, 2))
    assert [message.key().decode() for message in evens] == [row["key"] for row in rows(evens)]
    thirds = job.read(f"{topic}-third", len(range(0, COUNT, 3)))
    assert sorted(row["n"] for row in rows(thirds)) == list(range(0, COUNT, 3))
    assert json.loads(thirds[0].key()) == [str(value) for value in rows(thirds)[0].values()]


@pytest.mark.parametrize("options", [{}, {"kafka.linger.ms": "1"}])
def test_a_stateful_stream_goes_two_ways(run: Run, topic: str, options: dict[str, str]) -> None:
    """The aggregate runs once, whether Kafka's sinks have the same options or not."""
    app = sg.Application("counts")
    numbers = app.kafka_source("numbers", topic=topic, schema="key string, n long")

    @app.operator(inputs=numbers, output_mode="update")
    def counts(numbers: DataFrame) -> DataFrame:
        return numbers.groupBy("key").agg(F.count("*").alias("n"))

    app.split("size", input=counts, outputs={"first": "key = 'k0'"})
    app.kafka_sink("whole", input=counts, topic=f"{topic}-whole")
    app.kafka_sink("part", input="first", topic=f"{topic}-part", options=options)
    job = run(app)
    assert len(job.pes) == 1
    counted = {row["key"]: row["n"] for row in rows(job.read(f"{topic}-whole", KEYS))}
    assert counted == {f"k{key}": COUNT // KEYS for key in range(KEYS)}
    assert rows(job.read(f"{topic}-part", 1)) == [{"key": "k0", "n": COUNT // KEYS}]
    (running,) = job.queries.values()
    running.set_interval(7.0)
    assert next_trigger(running) == 7.0
    job.stop()
    reports = job.reports("counts")
    assert [len(report["stateOperators"]) for report in reports] == [1] * len(reports)
    assert sum(report["numInputRows"] for report in reports) == COUNT
    updated = sum(report["stateOperators"][0]["numRowsUpdated"] for report in reports)
    assert updated == KEYS


def test_one_aggregate_behind_another(run: Run, topic: str) -> None:
    """Spark can't run them in one plan, so they are two PEs."""
    app = sg.Application("sizes")
    numbers = app.kafka_source("numbers", topic=topic, schema="key string, n long")

    @app.operator(inputs=numbers, output_mode="update")
    def counts(numbers: DataFrame) -> DataFrame:
        return numbers.groupBy("key").agg(F.count("*").alias("n"))

    @app.operator(inputs=counts, output_mode="update")
    def largest(counts: DataFrame) -> DataFrame:
        return counts.groupBy(F.lit("all").alias("keys")).agg(F.max("n").alias("n"))

    app.kafka_sink("out", input=largest, topic=f"{topic}-largest")
    job = run(app)
    assert [pe.operators for pe in job.pes] == [["numbers", "counts"], ["largest", "out"]]
    assert rows(job.read(f"{topic}-largest", 1))[-1] == {
        "keys": "all",
        "n": COUNT // KEYS,
    }


def test_queries_that_sql_names_and_reads_twice(run: Run, topic: str) -> None:
    """In a region, where an operator may read its inputs alone."""
    app = sg.Application("named")
    numbers = app.kafka_source("numbers", topic=topic, schema="key string, n long")
    with app.parallel("by-key", key=["key"], max_width=1):

        @app.operator(inputs=numbers)
        def signed(rows: DataFrame) -> DataFrame:
            text = (
                "with even as (select key, n from {rows} where n % 2 = 0)"
                " select key, n from even union all select key, -n from even"
            )
            return rows.sparkSession.sql(text, rows=rows)

    app.kafka_sink("out", input=signed, topic=f"{topic}-signed", partitions=1)
    job = run(app)
    even = range(0, COUNT, 2)
    found = [row["n"] for row in rows(job.read(f"{topic}-signed", COUNT))]
    assert sorted(found) == sorted([*even, *(-n for n in even)])
    pe = job.pe_of("signed")
    assert job.plan(pe).scans == 1


def test_a_source_and_a_sink_of_the_application(run: Run, topic: str, tmp_path: Path) -> None:
    """Files in, a Python function out, and the same stream into Kafka."""
    source = tmp_path / "source"
    source.mkdir()
    taken: list[dict[str, Any]] = []
    batches: list[sg.Batch] = []
    app = sg.Application("files")

    @app.source(schema="key string, n long")
    def lines(session: SparkSession) -> DataFrame:
        return session.readStream.schema("key string, n long").json(str(source))

    @app.operator(inputs=lines)
    def doubled(lines: DataFrame) -> DataFrame:
        return lines.withColumn("n", F.col("n") * 2)

    @app.sink(inputs=doubled)
    def take(rows: DataFrame, batch: sg.Batch) -> None:
        taken.extend(row.asDict() for row in rows.collect())
        batches.append(batch)

    app.kafka_sink("copy", input=doubled, topic=f"{topic}-files", key=["key"])
    job = run(app)
    assert job.pe_of("take").operators == ["take"]
    for n in range(2):
        fresh = tmp_path / f"{n}.json"
        fresh.write_text(json.dumps({"key": "a", "n": n}) + "\n")
        os.replace(fresh, source / fresh.name)
        assert rows(job.read(f"{topic}-files", n + 1))[-1] == {"key": "a", "n": 2 * n}
    deadline = time.monotonic() + 30
    while len(taken) < 2:
        assert time.monotonic() < deadline, taken
        time.sleep(0.05)
    assert taken == [{"key": "a", "n": 0}, {"key": "a", "n": 2}]
    assert [*batches] == [*range(len(batches))]
    (pe,) = [pe for pe in job.pes if "take" in pe.operators]
    writer = f"default.{pe.job}.{pe.stage_name}.0.take"
    assert {(item.writer, item.shard) for item in batches} == {(writer, 0)}
    assert len({item.incarnation for item in batches}) == 1


def test_of_two_owners_one_logs_a_batch(session: SparkSession, tmp_path: Path) -> None:
    """The fence: a batch that another has logged can't be logged again, and stays as it was."""
    jvm: Any = session._jvm
    logs = jvm.org.apache.spark.sql.execution.streaming.checkpointing
    jsession: Any = session._jsparkSession
    owners = [logs.CommitLog(jsession, str(tmp_path / "commits"), False) for _ in range(2)]
    for batch in range(3):
        entries = [logs.CommitMetadata(watermark) for watermark in (1, 2)]
        first, second = batch % 2, 1 - batch % 2
        assert owners[first].add(batch, entries[0])
        assert not owners[second].add(batch, entries[1])
        assert '"nextBatchWatermarkMs":1' in (tmp_path / "commits" / str(batch)).read_text()


def test_real_time(run: Run, topic: str, cluster: Cluster) -> None:
    """Batches last to their turn, a fifth of their length at least; a planned stop between two
    loses and repeats nothing."""
    app = sg.Application("fast")
    numbers = app.kafka_source("numbers", topic=topic, schema="key string, n long")

    @app.operator(inputs=numbers, real_time=True)
    def doubled(numbers: DataFrame) -> DataFrame:
        return numbers.select("key", (F.col("n") * 2).alias("n"))

    app.split("size", input=doubled, outputs={"small": "n < 50"})
    app.kafka_sink("all", input=doubled, topic=f"{topic}-all", key=["key"])
    app.kafka_sink("few", input="small", topic=f"{topic}-few")
    job = run(app)
    assert [pe.real_time for pe in job.pes] == [True]
    job.read(f"{topic}-all", COUNT)
    job.stop()
    durations = [report["durationMs"]["triggerExecution"] for report in job.reports("doubled")]
    assert durations
    assert min(durations) >= BATCH_SECONDS * 1000 / 5
    write(cluster, topic, range(COUNT, 2 * COUNT))
    job.start()
    written = job.read(f"{topic}-all", 2 * COUNT)
    few = job.read(f"{topic}-few", 25)
    job.stop()
    assert sorted(row["n"] for row in rows(written)) == list(range(0, 4 * COUNT, 2))
    assert sorted(row["n"] for row in rows(few)) == list(range(0, 50, 2))
    assert [job.size(f"{topic}-{name}") for name in ("all", "few")] == [2 * COUNT, 25]


def test_no_partition_starves_in_real_time(run: Run, cluster: Cluster) -> None:
    """Spark would start the query, and never read the partitions without a slot."""
    topic = f"in-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic(topic, SLOTS + 1, 1)])[topic].result()
    app = sg.Application("wide")
    numbers = app.kafka_source("numbers", topic=topic, schema="key string, n long")
    app.operator(inputs=numbers, real_time=True)(passed)
    app.kafka_sink("all", input="passed", topic=f"{topic}-all")
    with pytest.raises(NotEnoughSlots, match="which are 5; the PE has 4: raise its slots"):
        run(app)


def passed(numbers: DataFrame) -> DataFrame:
    """Change nothing."""
    return numbers
