"""Whether a stage has read all that the one before it has written."""

import asyncio
import uuid

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from streamgraft_local import Cluster
from streamgraft_operator.kafka.client import Brokers, Kafka

pytestmark = pytest.mark.integration


async def test_what_is_in_an_open_transaction_is_still_to_come(cluster: Cluster) -> None:
    """As of a producer that has committed it, while its coordinator moves and tells nobody yet."""
    servers, topic = cluster.bootstrap_servers, f"drained-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
    producer = Producer({"bootstrap.servers": servers, "transactional.id": topic})
    producer.init_transactions(30)

    def write() -> None:
        producer.begin_transaction()
        producer.produce(topic, b"1", partition=0)
        assert producer.flush(30) == 0

    def read() -> None:
        isolated = {"group.id": topic, "isolation.level": "read_committed"}
        reader = Consumer({"bootstrap.servers": servers, **isolated})
        _, end = reader.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)
        reader.commit(offsets=[TopicPartition(topic, 0, end)], asynchronous=False)
        reader.close()

    async def drained() -> bool:
        return await Kafka().drained(Brokers(servers), topic, {topic: 1})

    async def read_up() -> None:
        async with asyncio.timeout(30):  # the end of a transaction comes a little later
            read()
            while not await drained():
                await asyncio.sleep(0.1)
                read()

    assert await drained(), "nothing was ever written"
    write()
    producer.commit_transaction(30)
    assert not await drained()
    await read_up()
    write()
    read()
    assert not await drained()
    producer.abort_transaction(30)
    await read_up()
