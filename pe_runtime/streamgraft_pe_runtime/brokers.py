"""Kafka as a PE asks it, beside Spark: ends of logs, and the consumer group that shows progress.

By a consumer that never joins its group. Not by librdkafka's admin client: its list_offsets ends
the whole process (a failed assertion) when brokers go away during a call.
"""

import logging
import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from streamgraft_pe_runtime.positions import Positions
from streamgraft_pe_runtime.scan_order import topic_of

_TIMEOUT_SECONDS = 5.0
_PARTITION_SECONDS = 2.5
"""For the bounds of one partition."""
_AT_A_TIME = 16
"""So many partitions are asked for their bounds: a query over many shards waits for them at its
start."""
_POLL_SECONDS = 0.02
_quiet = logging.getLogger(f"{__name__}.librdkafka")
_quiet.addHandler(logging.NullHandler())
_quiet.propagate = False


@dataclass
class Bounds:
    """Of each partition that answered the first offset that retention has left and the last stable
    one, and when it was asked (monotonic clock); of the others why not."""

    found: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    asked_at: dict[tuple[str, int], float] = field(default_factory=dict)
    failed: dict[tuple[str, int], str] = field(default_factory=dict)


def _topic(key: tuple[str, int]) -> tuple[str, int]:
    return topic_of(key[0]), key[1]


class Brokers:
    """One set of brokers and one consumer group; for use by any thread. Partitions go by place.

    All calls block for at most some seconds; what goes wrong is a KafkaException.
    """

    def __init__(self, bootstrap_servers: str, group: str, settings: Mapping[str, str]) -> None:
        """`settings`: librdkafka's, for what the brokers ask for."""
        self.settings = settings
        self._lock = threading.Lock()
        self._failing: list[tuple[str, int]] = []
        self._results: list[tuple[KafkaError | None, Positions]] = []
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                **settings,
                "group.id": group,
                "enable.auto.commit": False,
                # The end of a log is then its last stable offset: behind it are open transactions.
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "on_commit": self._committed,
            },
            # Connection errors come back from the calls; librdkafka would also print each of them.
            logger=_quiet,
        )

    def partitions(self, topic: str) -> list[int]:
        """Return the partitions of a topic; none if there is no such topic."""
        topics = self._consumer.list_topics(topic, timeout=_TIMEOUT_SECONDS).topics
        return sorted(topics[topic].partitions) if topic in topics else []

    def bounds(self, partitions: Iterable[tuple[str, int]]) -> Bounds:
        """Return where the logs of partitions begin and end, as far as they answer in time.

        Those that failed before are asked last, the longest-waiting first: a partition without a
        leader costs the others nothing.
        """
        wanted = set(partitions)
        before = [key for key in self._failing if key in wanted]
        deadline, bounds = time.monotonic() + _TIMEOUT_SECONDS, Bounds()
        failing: list[tuple[str, int]] = []

        def ask(key: tuple[str, int]) -> None:
            now = time.monotonic()
            if now >= deadline:
                bounds.failed[key] = "not asked: others took all the time"
                return
            try:
                bounds.found[key] = self._bounds(key, min(_PARTITION_SECONDS, deadline - now))
                bounds.asked_at[key] = now
            except KafkaException as error:
                bounds.failed[key] = str(error)
                failing.append(key)

        with ThreadPoolExecutor(_AT_A_TIME, "bounds") as threads:
            list(threads.map(ask, [*sorted(wanted - {*before}), *before]))
        asked = {*bounds.found, *failing}
        self._failing = [*(key for key in before if key not in asked), *failing]
        return bounds

    def _bounds(self, key: tuple[str, int], seconds: float) -> tuple[int, int]:
        answer: tuple[int, int] | None = self._consumer.get_watermark_offsets(
            TopicPartition(*_topic(key)), timeout=seconds
        )
        if answer is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return answer

    def has_records(self, key: tuple[str, int], position: int) -> bool:
        """Return whether a reader finds a record from a position on."""
        with self._lock:
            self._consumer.assign([TopicPartition(*_topic(key), position)])
            try:
                message = self._consumer.poll(_PARTITION_SECONDS)
            finally:
                self._consumer.unassign()
        error = KafkaError(KafkaError._TIMED_OUT) if message is None else message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise KafkaException(error)
        return error is None

    def publish(self, positions: Positions) -> None:
        """Commit positions for the group, which has no members."""
        positions = {_topic(key): offset for key, offset in positions.items()}
        offsets = [TopicPartition(*key, offset) for key, offset in positions.items()]
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        with self._lock:
            self._results.clear()
            # A synchronous commit can't be told how long to wait for brokers that are away.
            self._consumer.commit(offsets=offsets, asynchronous=True)
            while time.monotonic() < deadline:
                self._consumer.poll(_POLL_SECONDS)
                for error, committed in self._results:
                    if committed == positions:
                        if error is not None:
                            raise KafkaException(error)
                        return
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    def published(self, partitions: Iterable[tuple[str, int]]) -> Positions:
        """Return what the group has committed."""
        wanted = [TopicPartition(topic, number) for topic, number in partitions]
        found = self._consumer.committed(wanted, timeout=_TIMEOUT_SECONDS)
        return {(item.topic, item.partition): item.offset for item in found if item.offset >= 0}

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()

    def _committed(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        offsets = {(item.topic, item.partition): item.offset for item in partitions}
        self._results.append((error, offsets))


__all__ = ["Bounds", "Brokers", "KafkaException"]
