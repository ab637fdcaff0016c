"""Drivers that wait in a pool send records through Kafka and back."""

import logging
import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession
from tests.pe_runtime.one_driver import driver, size

from streamgraft_common.pe_metadata import OwnTopic
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
    return [size(cluster.bootstrap_servers, TopicPartition(topic, number, 0)) for number in (0, 1)]


@pytest.mark.parametrize("real_time", [True, pytest.param(False, marks=pytest.mark.long)])
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
        exchange(session, OwnTopic(topic=topic, bootstrap_servers=servers), real_time=real_time)
        sent, received = sizes(cluster, topic)
        assert before < received <= sent
        before = received
    assert caplog.records == []
