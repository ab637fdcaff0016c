"""Brokers in memory, and an admin client for them in the place of confluent-kafka's.

The operator's own `kafka.Kafka` runs on it: which topics it creates, widens and deletes is real.
"""

import random
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import NewPartitions, NewTopic
from tests.simulation.fake_records import FakeRecords

import streamgraft_operator.kafka.client


@dataclass
class FakeBrokers:
    """Topics with their partition counts, and consumer groups.

    `unreliable`: share of calls that fail, half of them after they had their effect.
    """

    chance: random.Random
    topics: dict[str, int] = field(default_factory=dict)
    groups: set[str] = field(default_factory=set)
    unreliable: float = 0.0
    late: set[str] = field(default_factory=set)
    """Topics that come too late for whoever creates them."""
    records: FakeRecords = field(default_factory=FakeRecords)
    renewed: dict[str, float] = field(default_factory=dict)
    """When consumers have committed for a group last, by the clock of the simulation."""
    clusters: dict[str, str] = field(default_factory=dict)
    """Ids of the clusters that addresses pretend to be of, where it is not the one."""

    def end(self) -> int:
        """Return how many records are in a topic that nobody has read yet: none, or one."""
        return self.chance.choice([0, 1])

    def admin(self, configuration: dict[str, Any]) -> "FakeAdminClient":
        """Return an admin client."""
        return FakeAdminClient(self, configuration.get("bootstrap.servers", ""))

    def consumer(self, configuration: dict[str, Any]) -> "FakeConsumer":
        """Return a consumer that never joins its group."""
        return FakeConsumer(self, configuration.get("group.id", ""))

    def producer(self, _: dict[str, Any]) -> "FakeProducer":
        """Return a producer, whatever its configuration."""
        return FakeProducer(self)

    def fails(self) -> bool:
        """Return whether a call fails, by chance."""
        return self.unreliable > 0 and self.chance.random() < self.unreliable


class FakeAdminClient:
    """What `streamgraft_operator.kafka.client` uses of an AdminClient."""

    def __init__(self, brokers: FakeBrokers, servers: str) -> None:
        self._brokers = brokers
        self._servers = servers

    def list_topics(self, timeout: float) -> Any:
        self._may_fail()
        topics = {
            name: SimpleNamespace(partitions=range(count))
            for name, count in self._brokers.topics.items()
        }
        known = self._brokers.clusters.get(self._servers, "fake")
        return SimpleNamespace(topics=topics, cluster_id=known)

    def list_consumer_groups(self, request_timeout: float) -> Future[Any]:
        valid = [SimpleNamespace(group_id=name) for name in sorted(self._brokers.groups)]
        return self._settled(SimpleNamespace(valid=valid))

    def create_topics(self, topics: list[NewTopic], **_: Any) -> dict[str, Future[Any]]:
        return {topic.topic: self._create(topic) for topic in topics}

    def create_partitions(self, wanted: list[NewPartitions], **_: Any) -> dict[str, Future[Any]]:
        for item in wanted:
            self._brokers.topics[item.topic] = item.new_total_count
        return {item.topic: self._settled() for item in wanted}

    def delete_topics(self, names: list[str], **_: Any) -> dict[str, Future[Any]]:
        return {name: self._delete(name) for name in names}

    def delete_consumer_groups(self, names: list[str], **_: Any) -> dict[str, Future[Any]]:
        self._brokers.groups -= set(names)
        return {name: self._settled() for name in names}

    def list_offsets(self, wanted: Any, **_: Any) -> dict[Any, Future[Any]]:
        end = self._brokers.end()
        return {part: self._settled(SimpleNamespace(offset=end)) for part in wanted}

    def list_consumer_group_offsets(self, wanted: list[Any], **_: Any) -> dict[str, Future[Any]]:
        (asked,) = wanted
        found = [TopicPartition(part.topic, part.partition, 0) for part in asked.topic_partitions]
        return {asked.group_id: self._settled(SimpleNamespace(topic_partitions=found))}

    def _create(self, topic: NewTopic) -> Future[Any]:
        if topic.topic in self._brokers.topics:
            return _failed(KafkaError.TOPIC_ALREADY_EXISTS)
        self._brokers.topics[topic.topic] = topic.num_partitions
        late = topic.topic in self._brokers.late
        return _failed(KafkaError.REQUEST_TIMED_OUT) if late else self._settled()

    def _delete(self, name: str) -> Future[Any]:
        if self._brokers.topics.pop(name, None) is None:
            return _failed(KafkaError.UNKNOWN_TOPIC_OR_PART)
        self._brokers.records.delete(name)
        return self._settled()

    def _settled(self, result: Any = None) -> Future[Any]:
        if self._fails():
            return _failed(KafkaError.REQUEST_TIMED_OUT)
        future: Future[Any] = Future()
        future.set_result(result)
        return future

    def _may_fail(self) -> None:
        if self._fails():
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    def _fails(self) -> bool:
        return self._brokers.fails()


class FakeProducer:
    """What `streamgraft_operator.kafka.client` uses of a Producer."""

    def __init__(self, brokers: FakeBrokers) -> None:
        self._brokers = brokers

    def init_transactions(self, timeout: float) -> None:
        if self._brokers.fails():
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))


class FakeConsumer:
    """What `streamgraft_operator.kafka.client` uses of a Consumer."""

    def __init__(self, brokers: FakeBrokers, group: str) -> None:
        self._brokers = brokers
        self._group = group

    def committed(self, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        self._may_fail()
        at = self._brokers.records.committed
        return [
            TopicPartition(item.topic, item.partition, at(self._group, item.topic, item.partition))
            for item in partitions
        ]

    def commit(self, offsets: list[TopicPartition], *, asynchronous: bool) -> None:
        self._may_fail()
        at = self._brokers.records.committed
        assert all(item.offset == at(self._group, item.topic, item.partition) for item in offsets)
        self._brokers.renewed[self._group] = time.monotonic()

    def get_watermark_offsets(self, partition: TopicPartition, timeout: float) -> tuple[int, int]:
        self._may_fail()
        return 0, self._brokers.records.end(partition.topic, partition.partition)

    def _may_fail(self) -> None:
        if self._brokers.fails():
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))


def _failed(code: int) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_exception(KafkaException(KafkaError(code)))
    return future


@contextmanager
def fake_kafka(brokers: FakeBrokers) -> Iterator[None]:
    """Let the operator find these brokers behind every address."""
    module: Any = streamgraft_operator.kafka.client
    real = module.AdminClient, module.Consumer, module.Producer
    module.AdminClient, module.Consumer = brokers.admin, brokers.consumer
    module.Producer = brokers.producer
    try:
        yield
    finally:
        module.AdminClient, module.Consumer, module.Producer = real
