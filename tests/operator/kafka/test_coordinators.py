"""Positions of a group whose coordinator is another broker by now, or not there yet."""

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from streamgraft_operator.kafka import client
from streamgraft_operator.kafka.client import Brokers, Kafka, KafkaUnavailable, Position


class MovingConsumer:
    """A fake of librdkafka's consumer, which is told a few times that it asks the wrong broker."""

    def __init__(self, code: int, times: int) -> None:
        self.code, self.times, self.asked = code, times, 0

    def committed(self, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        self.asked += 1
        if self.asked <= self.times:
            raise KafkaException(KafkaError(self.code, "not now"))
        return [TopicPartition(item.topic, item.partition, 7) for item in partitions]

    def get_watermark_offsets(self, partition: TopicPartition, timeout: float) -> tuple[int, int]:
        return 0, 9


async def positions(monkeypatch: pytest.MonkeyPatch, consumer: MovingConsumer) -> list[Position]:
    def follow(*given: object, **options: Any) -> MovingConsumer:
        return consumer

    monkeypatch.setattr(client, "_follow", follow)
    return await Kafka().positions(Brokers("fake:9092"), "group", {"topic": 1})


@pytest.mark.parametrize("code", sorted(client.COORDINATOR_MOVES))
async def test_they_are_read_once_it_is_settled(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """As with the first group of new brokers, which make the topic of positions for it."""
    monkeypatch.setattr(client, "AGAIN_SECONDS", 0.001)
    consumer = MovingConsumer(code, 3)
    assert await positions(monkeypatch, consumer) == [Position("topic", 0, 7, 9)]


async def test_it_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "TIMEOUT_SECONDS", 0.05)
    monkeypatch.setattr(client, "AGAIN_SECONDS", 0.001)
    consumer = MovingConsumer(KafkaError.NOT_COORDINATOR, 1_000_000)
    with pytest.raises(KafkaUnavailable, match="not now"):
        await positions(monkeypatch, consumer)
    assert consumer.asked > 1


async def test_what_is_refused_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    consumer = MovingConsumer(KafkaError.GROUP_AUTHORIZATION_FAILED, 1)
    with pytest.raises(KafkaUnavailable, match="not now"):
        await positions(monkeypatch, consumer)
    assert consumer.asked == 1
