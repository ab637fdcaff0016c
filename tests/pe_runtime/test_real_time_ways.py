"""Rows that go several ways in real-time mode, and topics that are read twice, on real Spark."""

import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession
from tests.pe_runtime.one_driver import Job, rows
from tests.pe_runtime.two_brokers import another_broker
from tests.producers import idempotent

import streamgraft as sg
from streamgraft_local import Cluster
from streamgraft_pe_runtime.arrangement import noted
from streamgraft_pe_runtime.checkpoint_files import LEDGERS, entries
from streamgraft_pe_runtime.modes import OtherMode, may_be_repeated
from streamgraft_pe_runtime.query import start
from streamgraft_pe_runtime.real_time import BATCH_SECONDS
from streamgraft_pe_runtime.targets import MAIN

pytestmark = pytest.mark.integration

RECORDS = 30
Run = Callable[[sg.Application], Job]


@pytest.fixture
def run(session: SparkSession, cluster: Cluster, tmp_path: Path) -> Iterator[Run]:
    """Runs an application; what still runs at the end is stopped."""
    jobs: list[Job] = []

    def start(app: sg.Application) -> Job:
        jobs.append(Job(app, session, cluster, tmp_path))
        return jobs[-1]

    yield start
    for job in jobs:
        for item in job.queries.values():
            item.stop(30)


@pytest.fixture
def topic(cluster: Cluster) -> str:
    """A topic with one partition, each scan of which takes a slot, and some records."""
    name = f"in-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result()
    write(cluster, name, range(RECORDS))
    return name


def write(cluster: Cluster, topic: str, numbers: range) -> None:
    """Write numbered records."""
    producer = idempotent(cluster.bootstrap_servers)
    for n in numbers:
        producer.produce(topic, json.dumps({"key": "k", "n": n}))
    assert producer.flush(60) == 0


def numbers(job: Job, topic: str, count: int) -> list[int]:
    """Return the numbers in a topic once there are so many, in order."""
    found = sorted(row["n"] for row in rows(job.read(topic, count)))
    assert job.size(topic) == count
    return found


def test_a_topic_that_two_sources_read(run: Run, topic: str) -> None:
    """Each has a schema of its own; a record of the one is not taken for that of the other."""
    app = sg.Application("united")
    first = app.kafka_source("whole", topic=topic, schema="key string, n long")
    second = app.kafka_source("narrow", topic=topic, schema="n long")

    @app.operator(inputs=[first, second], real_time=True)
    def united(whole: DataFrame, narrow: DataFrame) -> DataFrame:
        return whole.select("n").unionAll(narrow.selectExpr("n + 1000 as n"))

    app.kafka_sink("out", input=united, topic=f"{topic}-out", partitions=1)
    job = run(app)
    expected = [*range(RECORDS), *range(1000, 1000 + RECORDS)]
    assert numbers(job, f"{topic}-out", 2 * RECORDS) == expected


def test_a_mode_ends_what_it_has_begun(run: Run, cluster: Cluster, topic: str) -> None:
    """Only between two batches can it change: no record is there twice, whatever is tried."""
    app = sg.Application("copied")
    source = app.kafka_source("numbers", topic=topic, schema="key string, n long")
    copied = app.operator(inputs=source, real_time=True)(copy)
    app.kafka_sink("out", input=copied, topic=f"{topic}-out", partitions=1)
    job = run(app)
    real_time = job.pes
    batches = [pe.model_copy(update={"real_time": False}) for pe in job.pes]
    (query,) = job.queries.values()
    assert numbers(job, f"{topic}-out", RECORDS) == [*range(RECORDS)]
    query.stop(0)
    job.pes = batches
    with pytest.raises(OtherMode):
        job.start()
    job.pes = real_time
    job.start()
    write(cluster, topic, range(RECORDS, 40))
    assert numbers(job, f"{topic}-out", 40) == [*range(40)]
    job.stop()
    job.pes = batches
    job.start()
    write(cluster, topic, range(40, 50))
    assert numbers(job, f"{topic}-out", 50) == [*range(50)]
    job.stop()
    commits = query._checkpoint / "commits"
    (commits / str(max(entries(commits)))).unlink()
    job.pes = real_time
    with pytest.raises(OtherMode):
        job.start()
    job.pes = batches
    job.start()
    write(cluster, topic, range(50, 60))
    assert numbers(job, f"{topic}-out", 60) == [*range(60)]


def test_a_stage_whose_sinks_are_elsewhere_changes_its_mode_and_back(
    run: Run, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    """Its ledger is at their brokers in real-time mode, and at the job's in the other."""
    app = sg.Application("copied")
    source = app.kafka_source("numbers", topic=topic, schema="key string, n long")
    copied = app.operator(inputs=source, real_time=True)(copy)
    with another_broker(cluster, tmp_path / "kafka") as servers:
        out = f"{topic}-out"
        app.kafka_sink("out", input=copied, topic=out, bootstrap_servers=servers)
        admin = AdminClient({"bootstrap.servers": servers})
        admin.create_topics([NewTopic(out, 1, 1)])[out].result()
        job = run(app)
        job.reads_from(servers)
        real_time = job.pes
        batches = [pe.model_copy(update={"real_time": False}) for pe in job.pes]
        for number, pes in enumerate((real_time, batches, real_time), 1):
            if number > 1:
                job.stop()
                job.pes = pes
                job.start()
            write(cluster, topic, range(number * RECORDS, (number + 1) * RECORDS))
            count = (number + 1) * RECORDS
            assert numbers(job, out, count) == [*range(count)]
        for query in job.queries.values():
            query.stop(0)
        job.start()
        write(cluster, topic, range(count, count + 10))
        assert numbers(job, out, count + 10) == [*range(count + 10)]
        job.stop()


def copy(frame: DataFrame) -> DataFrame:
    return frame.select("key", "n")


def test_at_least_once_leaves_no_ledger_behind(run: Run, topic: str) -> None:
    """It ends what was cut off; whoever writes exactly once then, in any mode, begins anew."""
    app = sg.Application("copied")
    source = app.kafka_source("numbers", topic=topic, schema="key string, n long")
    copied = app.operator(inputs=source, real_time=True)(copy)
    app.kafka_sink("out", input=copied, topic=f"{topic}-out", partitions=1)
    job = run(app)
    (query,) = job.queries.values()
    assert numbers(job, f"{topic}-out", RECORDS) == [*range(RECORDS)]
    query.stop(0)
    checkpoint = query._checkpoint
    assert may_be_repeated(checkpoint)
    plan = job.plan(job.pes[0])
    assert isinstance(plan.output, list)
    loose = replace(plan, output=[target.at_least_once() for target in plan.output])
    start(loose, checkpoint, BATCH_SECONDS, "loose").stop(30)
    assert not may_be_repeated(checkpoint)
    assert not (checkpoint / LEDGERS / MAIN).exists()
    job.pes = [pe.model_copy(update={"real_time": False}) for pe in job.pes]
    job.start()


def branched(topic: str) -> sg.Application:
    """An application with a way for all rows, one for few, and one on which those meet others."""
    app = sg.Application("branched")
    source = app.kafka_source("numbers", topic=topic, schema="key string, n long")

    @app.operator(inputs=source, real_time=True)
    def doubled(frame: DataFrame) -> DataFrame:
        return frame.selectExpr("key", "2 * n as n")

    app.split("parts", input=doubled, outputs={"few": "n < 10", "rest": "n >= 10"})

    @app.operator(inputs="few", real_time=True)
    def negative(frame: DataFrame) -> DataFrame:
        return frame.selectExpr("key", "-n as n")

    @app.operator(inputs=[negative, doubled], real_time=True)
    def united(few: DataFrame, every: DataFrame) -> DataFrame:
        return few.selectExpr("key", "n - 1 as n").unionAll(every)

    for name in ("doubled", "negative", "united"):
        app.kafka_sink(f"{name}-sink", input=name, topic=f"{topic}-{name}", partitions=1)
    return app


def test_rows_go_several_ways(run: Run, cluster: Cluster, topic: str) -> None:
    """Each way has all of its rows once, also behind a stop; and they may meet again."""
    job = run(branched(topic))
    (query,) = job.queries.values()
    (checkpoint,) = [query._checkpoint]
    for count in (RECORDS, 2 * RECORDS):
        every = [2 * n for n in range(count)]
        assert numbers(job, f"{topic}-doubled", count) == every
        assert numbers(job, f"{topic}-negative", 5) == [-8, -6, -4, -2, 0]
        assert numbers(job, f"{topic}-united", count + 5) == [-9, -7, -5, -3, -1, *every]
        if count == RECORDS:
            assert may_be_repeated(checkpoint)
            job.stop()
            assert not may_be_repeated(checkpoint)
            found = noted(checkpoint)
            assert len(set(found.names)) == len(found.names) == 4
            written = sorted(output for name in found.names for output in found.of(name))
            united = "united-sink"
            assert written == ["doubled-sink", "negative-sink", united, united]
            write(cluster, topic, range(RECORDS, 2 * RECORDS))
            job.start()
