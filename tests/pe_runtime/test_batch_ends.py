"""When batches of real-time queries end: at a time of their own, or at once."""

import itertools
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession
from tests.pe_runtime.one_driver import driver, make_topic
from tests.producers import idempotent

from streamgraft_local import Cluster
from streamgraft_pe_runtime import query
from streamgraft_pe_runtime.batch_ends import staggered
from streamgraft_pe_runtime.plan import Plan
from streamgraft_pe_runtime.staggering import ALONE, Stagger
from streamgraft_pe_runtime.targets import KafkaTarget

pytestmark = pytest.mark.integration

LONG_SECONDS = 600.0
STARTS = 3


@pytest.fixture(scope="module")
def session(cluster: Cluster) -> Iterator[SparkSession]:
    """Return the session of a driver."""
    with driver(cluster, {}) as session:
        yield session


def planned_end(session: SparkSession, length: float) -> float:
    """Return when a batch would end that this thread plans now."""
    jvm: Any = session._jvm
    clock = jvm.org.apache.spark.sql.execution.datasources.v2.LowLatencyClock
    return float(clock.getTimeMillis()) / 1000 + length


@pytest.mark.parametrize("length", [5.0, 0.2])
def test_batches_end_at_their_times(session: SparkSession, length: float) -> None:
    """At the next that is a fifth of a batch away; without other shards they keep their length."""
    for stagger in (ALONE, Stagger(1, 4), Stagger(7, 8)):
        with staggered(session, length, stagger):
            before = time.time()
            end = planned_end(session, length)
            after = time.time()
        late = (end - stagger.share * length + length / 2) % length - length / 2
        assert late == pytest.approx(0, abs=0.0015)
        assert before + length / 5 - 0.002 <= end < after + 1.2 * length + 0.002
    before = time.time()
    end = planned_end(session, length)
    assert before - 0.002 <= end - length <= time.time() + 0.002


@pytest.fixture
def counting(cluster: Cluster) -> Iterator[str]:
    """Return a topic; numbers are written to its partitions 0 and 1 all the time."""
    topic, over = make_topic(cluster), threading.Event()

    def count() -> None:
        servers = cluster.bootstrap_servers
        producer = idempotent(servers)
        for number in itertools.count():
            for partition in (0, 1):
                producer.produce(topic, str(number), partition=partition)
            producer.poll(0)
            if over.wait(0.01):
                break
        producer.flush(10)

    writer = threading.Thread(target=count)
    writer.start()
    yield topic
    over.set()
    writer.join()


def copying(session: SparkSession, cluster: Cluster, topics: list[str], partition: int) -> Plan:
    """Return the plan of a shard that copies a partition from one topic to the other."""
    source, target = topics
    options = {"assign": json.dumps({source: [partition]}), "startingOffsets": "earliest"}
    servers = {"kafka.bootstrap.servers": cluster.bootstrap_servers}
    frame = session.readStream.format("kafka").options(**options, **servers).load()
    frame = frame.selectExpr(
        "0 target",
        f"'{target}' topic",
        "key",
        "value",
        f"{partition} partition",
        "cast(null as array<struct<key: string, value: binary>>) headers",
    )
    return Plan(
        frame, [KafkaTarget("MAIN", cluster.bootstrap_servers, "")], "update", real_time=True
    )


class Copy:
    """What was copied to a topic."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._consumer = Consumer(
            {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "test"}
        )
        self._consumer.assign([TopicPartition(topic, partition, 0) for partition in (0, 1)])
        self.numbers: dict[int, list[int]] = {0: [], 1: []}

    def grow(self) -> None:
        """Wait until there is more of both partitions."""
        sizes = {partition: len(numbers) for partition, numbers in self.numbers.items()}
        deadline = time.monotonic() + 60
        while any(len(self.numbers[partition]) <= size for partition, size in sizes.items()):
            assert time.monotonic() < deadline, sizes
            self.read()

    def read(self) -> None:
        """Read what there is."""
        for message in self._consumer.consume(10_000, 0.2):
            assert message.error() is None
            partition, value = message.partition(), message.value()
            assert partition is not None
            assert value is not None
            self.numbers[partition].append(int(value))

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()


def test_a_stop_ends_the_batch_before_its_next_record(
    session: SparkSession, cluster: Cluster, counting: str, tmp_path: Path
) -> None:
    """However long it would go on, and only its own; nothing is lost or comes twice."""
    topics = [counting, make_topic(cluster)]
    plans = [copying(session, cluster, topics, partition) for partition in (0, 1)]
    copy = Copy(cluster, topics[1])
    other = query.start(plans[1], tmp_path / "1", LONG_SECONDS, "other", Stagger(1, 2))
    for _ in range(STARTS):
        stopped = query.start(plans[0], tmp_path / "0", LONG_SECONDS, "stopped", Stagger(0, 2))
        copy.grow()
        assert stopped.stop(60)
        assert other.failure() is None
        assert other.reports(-1) == []
    assert other.stop(60)
    copy.read()
    copy.close()
    assert [len(numbers) > STARTS for numbers in copy.numbers.values()] == [True, True]
    for numbers in copy.numbers.values():
        assert numbers == list(range(len(numbers)))


@pytest.mark.parametrize(
    ("stagger", "scans", "early"),
    [(Stagger(1, 4), 1, True), (Stagger(1, 4), 2, False), (ALONE, 1, False)],
)
def test_whether_a_batch_may_end_early(
    session: SparkSession, stagger: Stagger, scans: int, early: bool
) -> None:
    """Only if it surely reads one partition: records of one would wait for those of others."""
    with staggered(session, 5.0, stagger, scans) as ends:
        assert ends.may_be_early is early
