"""Kafka administration: topics of a job are created, checked, and deleted with it.

confluent-kafka blocks, so every call runs in a thread, each with a timeout of its own.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from streamgraft_operator.graph import PlannedTopic

log = logging.getLogger(__name__)

TIMEOUT_SECONDS = 5.0
CLIENTS = 32
"""Clients that are kept open, each with its threads and connections."""

_Answer = TypeVar("_Answer")


class KafkaUnavailable(Exception):
    """The brokers don't answer or refuse; the message has their address."""


class TopicUnusable(Exception):
    """An existing topic doesn't fit; the message says what to do."""


Options = tuple[tuple[str, str], ...]
"""Settings of librdkafka."""


@dataclass(frozen=True)
class Brokers:
    """A Kafka cluster, and how to talk to it."""

    servers: str
    tls: Options = field(default=(), repr=False)
    """Settings for brokers that speak TLS; a private key may be among them."""

    def __str__(self) -> str:
        return self.servers


@dataclass(frozen=True)
class Position:
    """How far a consumer group is in a partition: a group that never committed is at the start of
    the log, as it is behind what retention has deleted."""

    topic: str
    partition: int
    committed: int
    end: int
    """The last stable offset: behind it are open transactions."""

    @property
    def lag(self) -> int:
        """Return how many records wait."""
        return max(self.end - self.committed, 0)


@dataclass(frozen=True)
class Leftovers:
    """What a job has in Kafka."""

    topics: tuple[str, ...]
    groups: tuple[str, ...]


class Kafka:
    """Administers any number of Kafka clusters."""

    def __init__(self) -> None:
        # A rotated certificate makes another client: what is not used any more must go.
        self._client = lru_cache(maxsize=CLIENTS)(_connect)
        self._consumer = lru_cache(maxsize=CLIENTS)(_follow)

    async def ensure(self, topics: Iterable[PlannedTopic], tls: Options) -> list[str]:
        """Create the topics that are missing; return the missing sources, which are the users'.

        `tls`: options for those brokers that speak TLS. Raises KafkaUnavailable or TopicUnusable.
        """
        by_servers: dict[Brokers, list[PlannedTopic]] = {}
        for topic in topics:
            brokers = Brokers(topic.bootstrap_servers, tls if topic.tls else ())
            by_servers.setdefault(brokers, []).append(topic)
        missing: list[str] = []
        for brokers, group in by_servers.items():
            missing += await asyncio.to_thread(self._ensure, brokers, group)
        return missing

    async def drained(self, brokers: Brokers, group: str, topics: Mapping[str, int]) -> bool:
        """Return whether a consumer group has read topics (name → partitions) to their ends.

        Raises KafkaUnavailable.
        """
        found = await self.positions(brokers, group, topics)
        return all(position.lag == 0 for position in found)

    async def positions(
        self, brokers: Brokers, group: str, topics: Mapping[str, int]
    ) -> list[Position]:
        """Return where a consumer group is in topics (name → partitions). Raises KafkaUnavailable.

        By a consumer that never joins the group. Not by librdkafka's admin client: its list_offsets
        ends the whole process (a failed assertion) when brokers go away during a call.
        """
        return await asyncio.to_thread(self._positions, brokers, group, topics) if topics else []

    async def leftovers(self, brokers: Brokers, prefix: str, keep: frozenset[str]) -> Leftovers:
        """Return topics (without `keep`) and consumer groups whose names begin with `prefix`.

        Raises KafkaUnavailable.
        """
        return await asyncio.to_thread(self._leftovers, brokers, prefix, keep)

    async def delete(self, brokers: Brokers, leftovers: Leftovers) -> None:
        """Delete topics and groups; what is gone already is fine. Raises KafkaUnavailable."""
        await asyncio.to_thread(self._delete, brokers, leftovers)

    async def fence(self, brokers: Brokers, transactional_ids: Collection[str]) -> None:
        """Abort what is open under transactional ids, and let their owners write no more.

        Raises KafkaUnavailable.
        """
        await asyncio.gather(
            *(asyncio.to_thread(_take_over, brokers, item) for item in transactional_ids)
        )

    def _ensure(self, brokers: Brokers, topics: list[PlannedTopic]) -> list[str]:
        existing = self._partitions(brokers)
        missing = [topic for topic in topics if topic.name not in existing]
        new = [topic for topic in missing if not topic.awaited]
        create = [
            NewTopic(topic.name, num_partitions=topic.partitions, replication_factor=-1)
            for topic in new
        ]
        if create:
            client = self._client(brokers)
            done = client.create_topics(create, request_timeout=TIMEOUT_SECONDS)
            _settle(brokers, done, KafkaError.TOPIC_ALREADY_EXISTS)
        self._widen(brokers, existing, topics)
        return [topic.name for topic in missing if topic.awaited]

    def _widen(
        self, brokers: Brokers, existing: Mapping[str, int], topics: list[PlannedTopic]
    ) -> None:
        ours = [topic for topic in topics if not topic.external and topic.name in existing]
        for topic in ours:
            if existing[topic.name] > topic.partitions:
                raise TopicUnusable(
                    f"topic {topic.name} has {existing[topic.name]} partitions, not"
                    f" {topic.partitions}: it is left over from another job; delete it"
                )
        narrow = [topic for topic in ours if existing[topic.name] < topic.partitions]
        parts = [NewPartitions(topic.name, topic.partitions) for topic in narrow]
        if parts:
            done = self._client(brokers).create_partitions(parts, request_timeout=TIMEOUT_SECONDS)
            _settle(brokers, done)

    def _positions(self, brokers: Brokers, group: str, topics: Mapping[str, int]) -> list[Position]:
        consumer = self._consumer(brokers, group)
        partitions = [
            TopicPartition(topic, number)
            for topic, count in topics.items()
            for number in range(count)
        ]

        def read() -> list[Position]:
            found = consumer.committed(partitions, timeout=TIMEOUT_SECONDS)
            committed = {(item.topic, item.partition): item.offset for item in found}
            return [
                _position(item, committed[item.topic, item.partition], _bounds(consumer, item))
                for item in partitions
            ]

        return _guarded(brokers, read)

    def _leftovers(self, brokers: Brokers, prefix: str, keep: frozenset[str]) -> Leftovers:
        topics = [name for name in self._partitions(brokers) if name.startswith(prefix)]
        listing = _guarded(
            brokers,
            lambda: (
                self._client(brokers)
                .list_consumer_groups(request_timeout=TIMEOUT_SECONDS)
                .result(TIMEOUT_SECONDS * 2)
            ),
        )
        groups = [group.group_id for group in listing.valid if group.group_id.startswith(prefix)]
        return Leftovers(tuple(sorted(set(topics) - keep)), tuple(sorted(groups)))

    def _delete(self, brokers: Brokers, leftovers: Leftovers) -> None:
        client = self._client(brokers)
        if leftovers.topics:
            done = client.delete_topics(
                list(leftovers.topics),
                operation_timeout=TIMEOUT_SECONDS,
                request_timeout=TIMEOUT_SECONDS * 2,
            )
            _settle(brokers, done, KafkaError.UNKNOWN_TOPIC_OR_PART)
        if leftovers.groups:
            done = client.delete_consumer_groups(
                list(leftovers.groups), request_timeout=TIMEOUT_SECONDS
            )
            _settle(brokers, done, KafkaError.GROUP_ID_NOT_FOUND)

    def _partitions(self, brokers: Brokers) -> dict[str, int]:
        client = self._client(brokers)
        listing = _guarded(brokers, lambda: client.list_topics(timeout=TIMEOUT_SECONDS))
        return {name: len(topic.partitions) for name, topic in listing.topics.items()}


def _connect(brokers: Brokers) -> AdminClient:
    return AdminClient(_options(brokers))


def _follow(brokers: Brokers, group: str) -> Consumer:
    settings = {"group.id": group, "enable.auto.commit": False}
    return Consumer({**_options(brokers), **settings, "isolation.level": "read_committed"})


def _take_over(brokers: Brokers, transactional_id: str) -> None:
    producer = Producer({**_options(brokers), "transactional.id": transactional_id})
    _guarded(brokers, lambda: producer.init_transactions(TIMEOUT_SECONDS))


def _options(brokers: Brokers) -> dict[str, Any]:
    return {
        "bootstrap.servers": brokers.servers,
        **dict(brokers.tls),
        "socket.timeout.ms": int(TIMEOUT_SECONDS * 1000),
        # A broker that comes back is to be noticed soon.
        "reconnect.backoff.max.ms": 1000,
        "log_level": 2,
    }


def _bounds(consumer: Consumer, partition: TopicPartition) -> tuple[int, int]:
    found: tuple[int, int] | None = consumer.get_watermark_offsets(
        partition, timeout=TIMEOUT_SECONDS
    )
    if found is None:
        raise TimeoutError
    return found


def _position(partition: TopicPartition, committed: int, bounds: tuple[int, int]) -> Position:
    start, end = bounds
    return Position(partition.topic, partition.partition, max(committed, start), end)


def _guarded(brokers: Brokers, call: Callable[[], _Answer]) -> _Answer:
    try:
        return call()
    except (KafkaException, TimeoutError) as error:
        raise KafkaUnavailable(f"Kafka at {brokers} does not answer: {_text(error)}") from error


def _settle(brokers: Brokers, done: Mapping[str, Future[Any]], *harmless: int) -> None:
    for name, future in done.items():
        try:
            future.result(TIMEOUT_SECONDS * 3)
        except KafkaException as error:
            if error.args[0].code() not in harmless:
                raise KafkaUnavailable(f"Kafka at {brokers}, {name}: {_text(error)}") from error
        except TimeoutError as error:
            raise KafkaUnavailable(f"Kafka at {brokers}, {name}: no answer in time") from error


def _text(error: Exception) -> str:
    reason = error.args[0] if error.args else error
    return reason.str() if isinstance(reason, KafkaError) else (str(reason) or "no answer in time")
