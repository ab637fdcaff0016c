"""An application on real Spark and Kafka, all of its PEs in the driver of the test."""

import json
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession
from tests.producers import idempotent

import streamgraft as sg
from streamgraft._adl import describe
from streamgraft._analysis import analyze as planned
from streamgraft._graph import OutputMode
from streamgraft_common.adl import Operator
from streamgraft_common.pe_metadata import PeMetadata
from streamgraft_common.spark_jvm import JvmSettings, SparkJvm
from streamgraft_local import Cluster
from streamgraft_operator.graph import JobContext, topology_of
from streamgraft_pe_runtime import query, repeats
from streamgraft_pe_runtime.conf import spark_conf
from streamgraft_pe_runtime.plan import Compiler, Plan, RealInputs
from streamgraft_pe_runtime.real_time import BATCH_SECONDS
from streamgraft_pe_runtime.slot_check import check_slots
from streamgraft_pe_runtime.warm_up import warm_up

KEYS = 4
PARTITIONS = 3
SLOTS = 4
_POLL_SECONDS = 0.1
"""Spark tells nobody that a batch is over."""


@contextmanager
def driver(
    cluster: Cluster, conf: Mapping[str, str], *, slots: int = SLOTS
) -> Iterator[SparkSession]:
    """A driver with the settings of a PE."""
    tools = cluster.state().tools
    settings = JvmSettings(str(tools.java), tools.driver_jars, tools.cds_archive)
    jvm = SparkJvm.start(spark_conf("test", slots, conf), settings)
    try:
        yield jvm.attach()
    finally:
        jvm.stop()


def application(
    function: Callable[[DataFrame], DataFrame],
    topic: str,
    out: str,
    output_mode: OutputMode = "append",
) -> sg.Application:
    """An application that writes what a function makes of numbered records."""
    app = sg.Application("numbered")
    numbers = app.kafka_source("numbers", topic=topic, schema="key string, n long")
    made = app.operator(inputs=numbers, output_mode=output_mode)(function)
    app.kafka_sink("results", input=made, topic=out, key=["key"], partitions=1)
    return app


class Job:
    """An application whose PEs run as queries of one driver, each with its first shard."""

    def __init__(
        self,
        app: sg.Application,
        session: SparkSession,
        cluster: Cluster,
        folder: Path,
        *,
        rehearsed: bool = False,
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
        self._app, self._adl, self._session = app, adl, session
        self._folder = folder / name
        if rehearsed:
            self._rehearse()
        else:
            self.start()

    def _rehearse(self) -> None:
        for pe in self.pes:
            compiler = Compiler(self._app, self._adl, pe)
            warm_up(self._session, compiler, pe, self._adl)

    def start(self) -> None:
        """Start the queries of all PEs, as their shards 0, the way a new owner does."""
        (self._folder / "0").mkdir(parents=True, exist_ok=True)
        repeats.keep_notes(
            self._session, self._folder, [port for pe in self.pes for port in pe.inputs]
        )
        for pe in self.pes:
            plan = self.plan(pe)
            if plan.real_time:
                check_slots(plan, pe, {port.bootstrap_servers: {} for port in pe.inputs})
            name = f"{pe.job}-{pe.stage_name}"
            seconds = BATCH_SECONDS if pe.real_time else 0.2
            self.queries[pe.stage_name] = query.start(plan, self.checkpoint(pe), seconds, name)

    def checkpoint(self, pe: PeMetadata) -> Path:
        """Return the checkpoint of the query of a PE."""
        return self._folder / pe.stage_name

    def plan(self, pe: PeMetadata) -> Plan:
        """Return what the query of a PE is made of."""
        inputs = RealInputs(self._session, pe, self._adl)
        return Compiler(self._app, self._adl, pe).compile((0,), inputs)

    @property
    def operators(self) -> dict[str, Operator]:
        """The operators by name."""
        return {operator.name: operator for operator in self._adl.operators}

    def pe_of(self, operator: str) -> PeMetadata:
        """Return the PE that has an operator."""
        (found,) = [pe for pe in self.pes if operator in pe.operators]
        return found

    def reports(self, operator: str) -> list[dict[str, Any]]:
        """Return Spark's progress of the batches of the PE that has an operator."""
        return self.queries[self.pe_of(operator).stage_name].reports(-1)

    def taken(self, operator: str, records: int) -> None:
        """Wait until the batches of the PE that has an operator have had so many records."""
        deadline = time.monotonic() + 60
        while sum(report["numInputRows"] for report in self.reports(operator)) < records:
            failures = [item.failure() for item in self.queries.values()]
            assert failures == [None] * len(failures)
            assert time.monotonic() < deadline
            time.sleep(_POLL_SECONDS)

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

    def reads_from(self, servers: str) -> None:
        """Read topics at other brokers from now on."""
        self._servers = servers

    def size(self, topic: str) -> int:
        """Return the number of records in a topic's first partition."""
        return size(self._servers, TopicPartition(topic, 0, 0))

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


def size(servers: str, partition: TopicPartition) -> int:
    """Return how many records a partition has: ends of transactions have offsets, too."""
    settings = {"bootstrap.servers": servers, "group.id": "test"}
    consumer = Consumer({**settings, "enable.partition.eof": True})
    consumer.assign([partition])
    count = 0
    while True:
        for message in consumer.consume(1000, 0.5):
            if error := message.error():
                assert error.code() == KafkaError._PARTITION_EOF
                consumer.close()
                return count
            count += 1


def make_topic(cluster: Cluster) -> str:
    """Make a topic with a name of its own."""
    name = f"in-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result()
    return name


def write(cluster: Cluster, topic: str, numbers: Iterable[int]) -> None:
    """Write numbered records."""
    producer = idempotent(cluster.bootstrap_servers)
    for n in numbers:
        value, key = json.dumps({"key": f"k{n % KEYS}", "n": n}), f"k{n % KEYS}"
        producer.produce(topic, value, key, n % PARTITIONS, headers={"number": str(n).encode()})
    assert producer.flush(60) == 0


def read_all(cluster: Cluster, topic: str, partitions: int) -> list[Any]:
    """Return all messages that a topic has now."""
    settings = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "all"}
    consumer = Consumer({**settings, "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    found: list[Any] = []
    ended = 0
    while ended < partitions:
        for message in consumer.consume(1000, 0.2):
            if message.error():
                ended += 1
            else:
                found.append(message)
    consumer.close()
    return found


def rows(messages: list[Any]) -> list[dict[str, Any]]:
    """Return the JSON objects of messages."""
    return [json.loads(message.value()) for message in messages]
