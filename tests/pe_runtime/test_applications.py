"""Applications from their code to records: built, planned into PEs, and run, all in one driver."""

import json
import os
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import streamgraft as sg
from streamgraft._adl import describe
from streamgraft._planning import plan as planned
from streamgraft_common.pe_metadata import PeMetadata
from streamgraft_common.spark_jvm import JvmSettings, SparkJvm
from streamgraft_local import Cluster
from streamgraft_operator.graph import JobContext
from streamgraft_operator.graph import plan as topology_of
from streamgraft_pe_runtime import query
from streamgraft_pe_runtime.conf import spark_conf
from streamgraft_pe_runtime.driver import NotEnoughSlots, check_slots
from streamgraft_pe_runtime.plan import Compiler, RealInputs
from streamgraft_pe_runtime.real_time import BATCH_SECONDS

pytestmark = pytest.mark.integration

COUNT = 40
KEYS = 4
PARTITIONS = 3
SLOTS = 4


class Job:
    """An application whose PEs run as queries of one driver, each with its first shard."""

    def __init__(
        self, app: sg.Application, session: SparkSession, cluster: Cluster, folder: Path
    ) -> None:
        found = planned(app.graph, session, Path(__file__).parent)
        assert found.errors == []
        adl = describe(app, found, Path(__file__), "app")
        name = f"job-{uuid.uuid4().hex[:8]}"
        context = JobContext("default", name, "uid", "digest", cluster.bootstrap_servers)
        topology = topology_of(adl, context, {})
        self.pes = [pe.metadata for pe in topology.pes]
        self.queries: dict[str, query.ShardQuery] = {}
        self._servers = cluster.bootstrap_servers
        self._make_topics({topic.name: topic.partitions for topic in topology.topics})
        self._plans = {
            pe.stage_name: Compiler(app, adl, pe).compile(0, RealInputs(session, pe, adl))
            for pe in self.pes
        }
        self._folder = folder / name
        self.start()

    def start(self) -> None:
        """Start the queries of all PEs, as their shards 0."""
        for pe in self.pes:
            plan = self._plans[pe.stage_name]
            if pe.real_time:
                check_slots(plan, pe)
            name = f"{pe.job}-{pe.stage_name}"
            checkpoint = self._folder / pe.stage_name
            self.queries[pe.stage_name] = query.start(plan, checkpoint, 0.2, name)

    def pe_of(self, operator: str) -> PeMetadata:
        """Return the PE that has an operator."""
        (found,) = [pe for pe in self.pes if operator in pe.operators]
        return found

    def reports(self, operator: str) -> list[dict[str, Any]]:
        """Return Spark's progress of the batches of the PE that has an operator."""
        return self.queries[self.pe_of(operator).stage_name].reports(-1)

    def read(self, topic: str, count: int) -> list[Any]:
        """Wait for this many records of a topic and return its first partition's messages."""
        consumer = Consumer({"bootstrap.servers": self._servers, "group.id": "test"})
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[Any] = []
        deadline = time.monotonic() + 60
        while len(found) < count:
            failures = [item.failure() for item in self.queries.values()]
            assert failures == [None] * len(failures)
            assert time.monotonic() < deadline, (topic, len(found))
            found += consumer.consume(1000, 0.2)
        consumer.close()
        assert [message.error() for message in found] == [None] * len(found)
        return found

    def size(self, topic: str) -> int:
        """Return the number of records in a topic's first partition."""
        consumer = Consumer({"bootstrap.servers": self._servers, "group.id": "test"})
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)
        consumer.close()
        return int(end)

    def stop(self) -> None:
        """Stop all queries at their batch boundaries."""
        clean = [item.stop(30) for item in self.queries.values()]
        assert all(clean)

    def _make_topics(self, topics: dict[str, int]) -> None:
        admin = AdminClient({"bootstrap.servers": self._servers})
        missing = topics.keys() - admin.list_topics(timeout=10).topics.keys()
        wanted = [NewTopic(topic, topics[topic], 1) for topic in missing]
        for created in admin.create_topics(wanted).values() if wanted else ():
            created.result()


@pytest.fixture(scope="module")
def session(cluster: Cluster) -> Iterator[SparkSession]:
    """A driver with the settings of a PE."""
    tools = cluster.state().tools
    settings = JvmSettings(str(tools.java), tools.connector_jars, tools.cds_archive)
    jvm = SparkJvm.start(spark_conf("test", SLOTS, {}), settings)
    yield jvm.attach()
    jvm.stop()


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
    name = f"in-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result()
    write(cluster, name, range(COUNT))
    return name


def write(cluster: Cluster, topic: str, numbers: range) -> None:
    """Write numbered records."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for n in numbers:
        value, key = json.dumps({"key": f"k{n % KEYS}", "n": n}), f"k{n % KEYS}"
        producer.produce(topic, value, key, n % PARTITIONS, headers={"number": str(n).encode()})
    assert producer.flush(10) == 0


def next_trigger(running: query.ShardQuery) -> float:
    """Return when Spark would trigger a query again that was triggered at time 0."""
    executor = running._handle.streamingQuery().triggerExecutor()
    return float(executor.nextBatchTime(0)) / 1000


def rows(messages: list[Any]) -> list[dict[str, Any]]:
    """Return the JSON objects of messages."""
    return [json.loads(message.value()) for message in messages]


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


def test_a_source_and_a_sink_of_the_application(run: Run, topic: str, tmp_path: Path) -> None:
    """Files in, a Python function out, and the same stream into Kafka."""
    source = tmp_path / "source"
    source.mkdir()
    taken: list[dict[str, Any]] = []
    app = sg.Application("files")

    @app.source(schema="key string, n long")
    def lines(session: SparkSession) -> DataFrame:
        return session.readStream.schema("key string, n long").json(str(source))

    @app.operator(inputs=lines)
    def doubled(lines: DataFrame) -> DataFrame:
        return lines.withColumn("n", F.col("n") * 2)

    @app.sink(inputs=doubled)
    def take(batch: DataFrame, batch_id: int) -> None:
        taken.extend(row.asDict() for row in batch.collect())

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
    """Batches last their whole length; a planned stop between two loses and repeats nothing."""
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
    assert min(durations) >= BATCH_SECONDS * 1000
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
