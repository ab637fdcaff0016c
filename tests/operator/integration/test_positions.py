"""Positions of a consumer group that nobody uses, on real brokers."""

import uuid

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.producers import idempotent

from streamgraft_local import Cluster
from streamgraft_operator.kafka.client import Brokers, Kafka, Position

pytestmark = pytest.mark.integration


async def test_positions_of_a_group_without_members_are_committed_again(cluster: Cluster) -> None:
    topic = f"positions-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result()
    producer = idempotent(cluster.bootstrap_servers)
    for number in range(3):
        producer.produce(topic, str(number), partition=0)
    assert producer.flush(30) == 0
    kafka, brokers, group = Kafka(), Brokers(cluster.bootstrap_servers), f"{topic}-group"
    assert group not in await kafka.groups(brokers)
    known = [Position(topic, 0, 2, 3), Position(topic, 1, 0, 0)]
    for _ in range(2):
        await kafka.renew(brokers, group, known)
        assert await kafka.positions(brokers, group, {topic: 2}) == known
    assert group in await kafka.groups(brokers)
