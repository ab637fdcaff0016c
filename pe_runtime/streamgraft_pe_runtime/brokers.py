"""Kafka as a PE asks it, beside Spark: ends of logs, and the consumer group that shows progress."""

import logging
from collections.abc import Iterable

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from streamgraft_pe_runtime.positions import Positions

log = logging.getLogger(__name__)

_TIMEOUT_SECONDS = 5.0
_quiet = logging.getLogger(f"{__name__}.librdkafka")
_quiet.addHandler(logging.NullHandler())
_quiet.propagate = False


class Brokers:
    """One set of brokers. All calls block for at most some seconds; failures are KafkaException."""

    def __init__(self, bootstrap_servers: str) -> None:
        # Connection errors come back from the calls; librdkafka would also print each of them.
        self._admin = AdminClient({"bootstrap.servers": bootstrap_servers}, logger=_quiet)

    def partitions(self, topic: str) -> list[int]:
        """Return the partitions of a topic; none if there is no such topic."""
        topics = self._admin.list_topics(topic, timeout=_TIMEOUT_SECONDS).topics
        return sorted(topics[topic].partitions) if topic in topics else []

    def ends(self, partitions: Iterable[tuple[str, int]]) -> Positions:
        """Return the last stable offsets: behind them only open transactions have records."""
        return self._offsets(partitions, OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def starts(self, partitions: Iterable[tuple[str, int]]) -> Positions:
        """Return the first offsets that retention has left."""
        return self._offsets(partitions, OffsetSpec.earliest())  # type: ignore[no-untyped-call]

    def publish(self, group: str, positions: Positions) -> None:
        """Commit positions for a consumer group that has no members."""
        offsets = [
            TopicPartition(topic, partition, offset)
            for (topic, partition), offset in positions.items()
        ]
        request = [ConsumerGroupTopicPartitions(group, offsets)]
        answers = self._admin.alter_consumer_group_offsets(
            request, request_timeout=_TIMEOUT_SECONDS
        )
        answers[group].result()

    def published(self, group: str) -> Positions:
        """Return what a consumer group has committed."""
        request = [ConsumerGroupTopicPartitions(group)]
        answers = self._admin.list_consumer_group_offsets(request, request_timeout=_TIMEOUT_SECONDS)
        found = answers[group].result().topic_partitions
        return {(item.topic, item.partition): item.offset for item in found if item.offset >= 0}

    def _offsets(self, partitions: Iterable[tuple[str, int]], spec: OffsetSpec) -> Positions:
        wanted = {TopicPartition(topic, number): spec for topic, number in partitions}
        if not wanted:
            return {}
        answers = self._admin.list_offsets(
            wanted,
            isolation_level=IsolationLevel.READ_COMMITTED,
            request_timeout=_TIMEOUT_SECONDS,
        )
        return {(item.topic, item.partition): answers[item].result().offset for item in answers}


__all__ = ["Brokers", "KafkaException"]
