"""Positions of a group whose coordinator is another broker by now, or not there yet."""

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from streamgraft_operator.kafka import client
from streamgraft_operator.kafka.client import Brokers, Kafka, KafkaUnavailable, Position
from streamgraft_operator.kit.leadership import NotLeading


class MovingConsumer:
    """A fake of librdkafka's consumer, which is told a few times that it asks the wrong broker."""

    def __init__(self, code: int, times: int) -> None:
        self.code, self.times, self.asked = code, times, 0

    def committed(self, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        self._ask()
        return [TopicPartition(item.topic, item.partition, 7) for item in partitions]

    def commit(self, offsets: list[TopicPartition], asynchronous: bool) -> None:
        self._ask()

    def get_watermark_offsets(self, partition: TopicPartition, timeout: float) -> tuple[int, int]:
        return 0, 9

    def _ask(self) -> None:
        self.asked += 1
        if self.asked <= self.times:
            raise KafkaException(KafkaError(self.code, "not now"))


def follow(monkeypatch: pytest.MonkeyPatch, consumer: MovingConsumer) -> None:
    def made(*given: object, **options: Any) -> MovingConsumer:
        return consumer

    monkeypatch.setattr(client, "_follow", made)


async def positions(monkeypatch: pytest.MonkeyPatch, consumer: MovingConsumer) -> list[Position]:
    follow(monkeypatch, consumer)
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


@pytest.mark.parametrize("code", sorted(client.COORDINATOR_MOVES))
async def test_they_are_renewed_once_it_is_settled(
    monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr(client, "AGAIN_SECONDS", 0.001)
    consumer = MovingConsumer(code, 3)
    follow(monkeypatch, consumer)
    await Kafka().renew(Brokers("fake:9092"), "group", [Position("topic", 0, 7, 9)])
    assert consumer.asked == 4


async def test_nothing_is_renewed_once_another_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though this replica led when it first asked."""
    monkeypatch.setattr(client, "AGAIN_SECONDS", 0.001)
    consumer = MovingConsumer(KafkaError.NOT_COORDINATOR, 3)
    follow(monkeypatch, consumer)
    kafka = Kafka(may_write=lambda: consumer.asked < 2)
    with pytest.raises(NotLeading):
        await kafka.renew(Brokers("fake:9092"), "group", [Position("topic", 0, 7, 9)])
    assert consumer.asked == 2
