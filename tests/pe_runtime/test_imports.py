"""An import on real Spark and Kafka, while exports come and go."""

import json
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, OffsetSpec
from pyspark.sql import DataFrame, SparkSession
from tests.pe_runtime.one_driver import Job, make_topic, rows, write

import streamgraft as sg
from streamgraft_local import Cluster
from streamgraft_pe_runtime import query_logs
from streamgraft_pe_runtime.checkpoint_files import entries

pytestmark = pytest.mark.integration

SCHEMA = "key string, n bigint"


def connect(session: SparkSession, topics: Sequence[str], operator: str = "shared") -> None:
    """Have an import read these topics from now on, as a PE does that the broker has told."""
    jvm: Any = session._jvm
    jvm.org.apache.spark.sql.kafka010.imports.Matches.set(operator, list(topics))


@pytest.fixture(autouse=True)
def unconnected(session: SparkSession) -> None:
    """An import of the same name reads nothing of the test before."""
    connect(session, [])


def exporter(session: SparkSession, cluster: Cluster, folder: Path) -> tuple[Job, str, str]:
    """Run a job that exports a topic; return it, the topic, and that of its export."""
    topic = make_topic(cluster)
    app = sg.Application("exporter")
    source = app.kafka_source("numbers", topic=topic, schema=SCHEMA)
    app.export(source, name="numbers", partitions=2)
    job = Job(app, session, cluster, folder)
    (port,) = job.pe_of("numbers-export").outputs
    return job, topic, port.topic


def test_each_record_is_read_once(session: SparkSession, cluster: Cluster, tmp_path: Path) -> None:
    """Connections are made, unmade and made again, the query with state is stopped in between, and
    an export is deleted with its topic: nothing is lost, doubled, or stands still."""
    one, in_one, out_one = exporter(session, cluster, tmp_path)
    two, in_two, out_two = exporter(session, cluster, tmp_path)
    app = sg.Application("importer")
    shared = app.import_stream("shared", name="numbers", schema=SCHEMA)

    @app.operator(inputs=shared, output_mode="update")
    def counted(frame: DataFrame) -> DataFrame:
        return frame.groupBy("n").count()

    result = f"{in_one}-result"
    app.kafka_sink("copy", input=shared, topic=result)
    app.kafka_sink("counts", input=counted, topic=f"{result}-counts")
    importer = Job(app, session, cluster, tmp_path)

    def reads(count: int) -> list[int]:
        found = sorted(row["n"] for row in rows(importer.read(result, count)))
        time.sleep(1.0)
        assert importer.size(result) == len(found)
        return found

    try:
        write(cluster, in_one, range(30))
        connect(session, [out_one])
        assert reads(30) == list(range(30))
        connect(session, [])
        write(cluster, in_one, range(30, 60))
        write(cluster, in_two, range(100, 130))
        connect(session, [out_two])
        assert reads(60) == [*range(30), *range(100, 130)]
        importer.stop()
        connect(session, [out_one, out_two, "a-topic-that-is-not-there", ""])
        importer.start()
        everything = [*range(60), *range(100, 130)]
        assert reads(90) == everything
        two.stop()
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        admin.delete_topics([out_two])[out_two].result()
        write(cluster, in_one, range(60, 70))
        assert reads(100) == [*range(70), *range(100, 130)]
        counts = [json.loads(item.value()) for item in importer.read(f"{result}-counts", 100)]
        assert all(row["count"] == 1 for row in counts)
        assert out_two in _position(importer)
    finally:
        importer.stop()
        one.stop()


def one_import(
    session: SparkSession, cluster: Cluster, folder: Path, starting_offsets: Any
) -> tuple[Job, str]:
    """Run a job that copies an import; return it and the topic with the copy."""
    app = sg.Application("importer")
    shared = app.import_stream(
        "shared", name="numbers", schema=SCHEMA, starting_offsets=starting_offsets
    )
    result = f"out-{uuid.uuid4().hex[:8]}"
    app.kafka_sink("copy", input=shared, topic=result, partitions=1)
    return Job(app, session, cluster, folder), result


@dataclass(frozen=True)
class Copied:
    """A job that exports, and one that has copied ten records of it and is stopped."""

    exporter: Job
    source: str
    exported: str
    importer: Job
    result: str
    passed: Any
    """Where the importer tells of what it went past."""


@contextmanager
def copied(session: SparkSession, cluster: Cluster, folder: Path) -> Iterator[Copied]:
    """Run both."""
    jvm: Any = session._jvm
    passed = jvm.org.apache.spark.sql.kafka010.imports.Passed
    one, source, exported = exporter(session, cluster, folder)
    importer, result = one_import(session, cluster, folder, "earliest")
    try:
        connect(session, [exported])
        write(cluster, source, range(10))
        importer.read(result, 10)
        importer.stop()
        assert list(passed.take()) == []
        yield Copied(one, source, exported, importer, result, passed)
    finally:
        importer.stop()
        one.stop()


def until(holds: Callable[[], object]) -> None:
    """Wait for what the end of a batch brings, which Spark tells nobody."""
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _position(importer: Job) -> str:
    """Return where the import is."""
    reports = importer.reports("shared")
    return json.dumps(reports[-1]["sources"][0]["endOffset"]) if reports else ""


def test_partitions_that_a_known_topic_gets_are_read_from_their_beginning(
    session: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    """Also if the import is to begin at the latest: an edit of the export made them, while it was
    connected or was not for a while."""
    one, source, exported = exporter(session, cluster, tmp_path)
    importer, result = one_import(session, cluster, tmp_path, "latest")
    try:
        write(cluster, source, range(10))
        one.taken("numbers-export", 10)
        connect(session, [exported])
        until(lambda: exported in _position(importer))
        write(cluster, source, range(10, 20))
        assert sorted(row["n"] for row in rows(importer.read(result, 10))) == [*range(10, 20)]
        connect(session, [])
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        admin.create_partitions([NewPartitions(exported, 3)])[exported].result()
        servers = {"bootstrap.servers": cluster.bootstrap_servers}
        consumer = Consumer({**servers, "group.id": "test"})
        consumer.assign([TopicPartition(exported, number, 0) for number in range(2)])
        record = consumer.poll(30)
        assert record is not None
        consumer.close()
        producer = Producer(servers)
        producer.produce(exported, record.value(), record.key(), 2, headers=record.headers())
        assert producer.flush(30) == 0
        connect(session, [exported])
        assert len(importer.read(result, 11)) == 11
    finally:
        importer.stop()
        one.stop()


def test_a_batch_that_comes_again_misses_no_topic_that_is_to_be_read(
    session: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    """A broker may not know it for a moment. Once it is no export any more its records are lost."""
    with copied(session, cluster, tmp_path) as both:
        exported, importer, passed = both.exported, both.importer, both.passed
        (query,) = importer.queries.values()
        commits = query._checkpoint / "commits"
        (commits / str(max(entries(commits)))).unlink()
        both.exporter.stop()
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        admin.delete_topics([exported])[exported].result()
        importer.start()
        (query,) = importer.queries.values()
        until(query.failure)
        assert f"shared is to read {exported}, which is not found" in (query.failure() or "")
        importer.stop()
        assert list(passed.take()) == []
        connect(session, [])
        importer.start()
        until(lambda: not query_logs.is_cut_off(query._checkpoint))
        assert sum(int(gap[3]) - int(gap[2]) for gap in passed.take()) >= 1


def test_a_union_of_imports_is_turned_round(
    session: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    """Spark numbers sources as they stand in the plan: each would begin anew with its topics."""
    exporters = [exporter(session, cluster, tmp_path) for _ in range(2)]
    app = sg.Application("importer")
    inputs = [app.import_stream(name, name="numbers", schema=SCHEMA) for name in ("one", "two")]
    order = [0, 1]

    @app.operator(inputs=inputs)
    def united(*frames: DataFrame) -> DataFrame:
        return frames[order[0]].unionAll(frames[order[1]])

    result = f"out-{uuid.uuid4().hex[:8]}"
    app.kafka_sink("copy", input=united, topic=result, partitions=1)
    importer = Job(app, session, cluster, tmp_path)
    try:
        for (_, _, exported), name in zip(exporters, ("one", "two"), strict=True):
            connect(session, [exported], name)
        for first in (0, 20):
            for number, (_, source, _) in enumerate(exporters):
                write(cluster, source, range(100 * number + first, 100 * number + first + 20))
            found = sorted(row["n"] for row in rows(importer.read(result, 2 * first + 40)))
            assert found == [*range(first + 20), *range(100, 100 + first + 20)]
            importer.stop()
            order.reverse()
            importer.start()
    finally:
        importer.stop()
        for job, _, _ in exporters:
            job.stop()


def test_what_retention_took_from_an_import_is_told(
    session: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    """It goes on behind what is gone, and says once how much that was."""
    with copied(session, cluster, tmp_path) as both:
        exported, passed = both.exported, both.passed
        write(cluster, both.source, range(10, 40))
        both.exporter.taken("numbers-export", 40)
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        partitions = [TopicPartition(exported, number) for number in range(2)]
        latest: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        ends = admin.list_offsets(dict.fromkeys(partitions, latest))
        offsets = {at.partition: found.result().offset for at, found in ends.items()}
        kept = {number: end - 3 for number, end in offsets.items() if end > 10}
        assert kept
        cut = [TopicPartition(exported, number, start) for number, start in kept.items()]
        for deleted in admin.delete_records(cut).values():
            deleted.result(30)
        write(cluster, both.source, range(40, 50))
        both.importer.start()
        found = {row["n"] for row in rows(both.importer.read(both.result, 20))}
        assert {*range(10), *range(40, 50)} <= found
        gaps = {int(gap[1]): (int(gap[2]), int(gap[3])) for gap in passed.take()}
        assert {number: start for number, (_, start) in gaps.items()} == kept
        assert all(position < start for position, start in gaps.values())
        assert list(passed.take()) == []
