"""Drivers that wait in a pool send records through Kafka and back."""

import logging
import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession
from tests.pe_runtime.one_driver import driver

from streamgraft_common.pe_metadata import RehearsalTopic
from streamgraft_local import Cluster
from streamgraft_pe_runtime.exchange import exchange

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def session(cluster: Cluster) -> Iterator[SparkSession]:
    """Return the session of a driver."""
    with driver(cluster, {}) as session:
        yield session


def sizes(cluster: Cluster, topic: str) -> list[int]:
    """Return how many records each partition of a topic has."""
    return [size(cluster, TopicPartition(topic, number, 0)) for number in (0, 1)]


def size(cluster: Cluster, partition: TopicPartition) -> int:
    """Return how many records a partition has: ends of transactions have offsets, too."""
    settings = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "test"}
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


@pytest.mark.parametrize("real_time", [True, False])
def test_records_go_through_a_query_in_either_mode(
    session: SparkSession, cluster: Cluster, caplog: pytest.LogCaptureFixture, real_time: bool
) -> None:
    """What was sent to one partition comes to the other, again and again."""
    caplog.set_level(logging.WARNING)
    topic, servers = f"job.{uuid.uuid4().hex[:8]}.REHEARSAL", cluster.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result()
    before = 0
    for _ in range(2):
        exchange(
            session, RehearsalTopic(topic=topic, bootstrap_servers=servers), real_time=real_time
        )
        sent, received = sizes(cluster, topic)
        assert before < received <= sent
        before = received
    assert caplog.records == []
