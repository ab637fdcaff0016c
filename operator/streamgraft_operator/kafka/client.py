"""Kafka administration: topics of a job are created, checked, and deleted with it.

confluent-kafka blocks, so every call runs in a thread, each with a timeout of its own.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from streamgraft_operator.kafka.topics import SETTINGS, KafkaCluster, Leftovers, TopicChanges
from streamgraft_operator.kit.leadership import NotLeading
from streamgraft_operator.kit.together import together

log = logging.getLogger(__name__)

TIMEOUT_SECONDS = 5.0
THREADS = 32
AGAIN_SECONDS = 0.1
CLIENTS = 32
"""Clients that are kept open, each with its threads and connections."""

COORDINATOR_MOVES = frozenset(
    {
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
"""What brokers say of a group while another of them takes it over, or while they make the topic of
positions, as they do for the first group of all."""

_Answer = TypeVar("_Answer")


class KafkaUnavailable(Exception):
    """The brokers don't answer or refuse; the message has their address."""


Options = tuple[tuple[str, str], ...]
"""Settings of librdkafka."""


@dataclass(frozen=True)
class Brokers:
    """A Kafka cluster, and how to talk to it."""

    servers: str
    tls: Options = field(default=(), repr=False)
    """Settings for brokers that speak TLS; a private key or a password may be among them."""

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


class Kafka:
    """Administers any number of Kafka clusters.

    Writes raise NotLeading once `may_write` says no: a process that was frozen would delete topics
    that are another job's by now.
    """

    def __init__(self, may_write: Callable[[], bool] = lambda: True) -> None:
        self._may_write = may_write
        # A rotated certificate makes another client: what is not used any more must go.
        self._client = lru_cache(maxsize=CLIENTS)(_connect)
        self._consumer = lru_cache(maxsize=CLIENTS)(partial(_follow, isolation="read_committed"))
        self._onlooker = lru_cache(maxsize=CLIENTS)(partial(_follow, isolation="read_uncommitted"))
        # Brokers that never answer must not take the threads that everything else needs.
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="kafka")

    async def look(self, brokers: Brokers) -> KafkaCluster:
        """Return the cluster's id and topics. Raises KafkaUnavailable."""
        return await self._run(self._look, brokers)

    async def change(self, brokers: Brokers, changes: TopicChanges) -> None:
        """Create and widen topics. Raises KafkaUnavailable."""
        if changes.create or changes.widen:
            await self._write(self._change, brokers, changes)

    async def drained(self, brokers: Brokers, group: str, topics: Mapping[str, int]) -> bool:
        """Return whether a consumer group has read topics (name → partitions) to their ends, and
        no transaction is open there: one that its producer has committed is open until its
        coordinator has said so to each partition. Raises KafkaUnavailable.
        """
        found = await self.positions(brokers, group, topics)
        if any(position.lag > 0 for position in found):
            return False
        return await self._run(self._are_ends, brokers, group, found) if found else True

    async def positions(
        self, brokers: Brokers, group: str, topics: Mapping[str, int]
    ) -> list[Position]:
        """Return where a consumer group is in topics (name → partitions). Raises KafkaUnavailable.

        By a consumer that never joins the group. Not by librdkafka's admin client: its list_offsets
        ends the whole process (a failed assertion) when brokers go away during a call.
        """
        return await self._run(self._positions, brokers, group, topics) if topics else []

    async def renew(self, brokers: Brokers, group: str, positions: Sequence[Position]) -> None:
        """Commit the positions of a group that nobody uses once more: brokers forget those that are
        older than their `offsets.retention.minutes`. Raises KafkaUnavailable.
        """
        await self._run(self._renew, brokers, group, positions)

    async def groups(self, brokers: Brokers) -> list[str]:
        """Return the names of all consumer groups. Raises KafkaUnavailable."""
        return await self._run(self._groups, brokers)

    async def delete(self, brokers: Brokers, leftovers: Leftovers) -> None:
        """Delete topics and groups; what is gone already is fine. Raises KafkaUnavailable."""
        await self._write(self._delete, brokers, leftovers)

    async def fence(self, brokers: Brokers, transactional_ids: Collection[str]) -> None:
        """Abort what is open under transactional ids, and let their owners write no more.

        Raises KafkaUnavailable.
        """
        await together(self._write(_take_over, brokers, item) for item in transactional_ids)

    async def _write(self, call: Callable[..., None], brokers: Brokers, given: object) -> None:
        def write() -> None:
            # In the thread: it may have waited for others that never got an answer.
            self._check_may_write(brokers)
            call(brokers, given)

        await self._run(write)

    def _check_may_write(self, brokers: Brokers) -> None:
        if not self._may_write():
            raise NotLeading(f"nothing sent to Kafka at {brokers}: this replica does not lead")

    async def _run(self, call: Callable[..., _Answer], *given: object) -> _Answer:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, call, *given)

    def _look(self, brokers: Brokers) -> KafkaCluster:
        client = self._client(brokers)
        listing = _guarded(brokers, lambda: client.list_topics(timeout=TIMEOUT_SECONDS))
        partitions = {name: len(topic.partitions) for name, topic in listing.topics.items()}
        return KafkaCluster(listing.cluster_id or "", partitions)

    def _change(self, brokers: Brokers, changes: TopicChanges) -> None:
        client = self._client(brokers)
        new = [
            NewTopic(
                topic.name,
                num_partitions=topic.partitions,
                replication_factor=-1,
                config={} if topic.external else SETTINGS,
            )
            for topic in changes.create
        ]
        if new:
            done = client.create_topics(new, request_timeout=TIMEOUT_SECONDS)
            _settle(brokers, done, KafkaError.TOPIC_ALREADY_EXISTS)
        parts = [NewPartitions(topic.name, topic.partitions) for topic in changes.widen]
        if parts:
            _settle(brokers, client.create_partitions(parts, request_timeout=TIMEOUT_SECONDS))

    def _positions(self, brokers: Brokers, group: str, topics: Mapping[str, int]) -> list[Position]:
        consumer = self._consumer(brokers, group)
        partitions = [
            TopicPartition(topic, number)
            for topic, count in topics.items()
            for number in range(count)
        ]

        def read() -> list[Position]:
            found = _settled(lambda: consumer.committed(partitions, timeout=TIMEOUT_SECONDS))
            committed = {(item.topic, item.partition): item.offset for item in found}
            return [
                _position(item, committed[item.topic, item.partition], _bounds(consumer, item))
                for item in partitions
            ]

        return _guarded(brokers, read)

    def _are_ends(self, brokers: Brokers, group: str, positions: Sequence[Position]) -> bool:
        """Return whether nothing lies behind positions, not even of an open transaction."""
        onlooker = self._onlooker(brokers, group)

        def ends() -> bool:
            partitions = ((TopicPartition(at.topic, at.partition), at.end) for at in positions)
            return all(_bounds(onlooker, partition)[1] <= end for partition, end in partitions)

        return _guarded(brokers, ends)

    def _renew(self, brokers: Brokers, group: str, positions: Sequence[Position]) -> None:
        consumer = self._consumer(brokers, group)
        offsets = [TopicPartition(item.topic, item.partition, item.committed) for item in positions]

        def commit() -> None:
            self._check_may_write(brokers)  # each time: another may lead since the last attempt
            consumer.commit(offsets=offsets, asynchronous=False)

        _guarded(brokers, lambda: _settled(commit))

    def _groups(self, brokers: Brokers) -> list[str]:
        client = self._client(brokers)
        listing = _guarded(
            brokers,
            lambda: client.list_consumer_groups(request_timeout=TIMEOUT_SECONDS).result(
                TIMEOUT_SECONDS * 2
            ),
        )
        return [group.group_id for group in listing.valid]

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


def _connect(brokers: Brokers) -> AdminClient:
    return _configured(brokers, lambda: AdminClient(_options(brokers)))


def _follow(brokers: Brokers, group: str, isolation: str) -> Consumer:
    settings: dict[str, Any] = {"group.id": group, "enable.auto.commit": False}
    settings |= {**_options(brokers), "isolation.level": isolation}
    return _configured(brokers, lambda: Consumer(settings))


def _take_over(brokers: Brokers, transactional_id: str) -> None:
    settings = {**_options(brokers), "transactional.id": transactional_id}
    producer = _configured(brokers, lambda: Producer(settings))
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


def _configured(brokers: Brokers, make: Callable[[], _Answer]) -> _Answer:
    try:
        return make()
    except KafkaException as error:
        raise KafkaUnavailable(
            f"Kafka at {brokers} can't be asked, its settings are wrong: {_text(error)};"
            " look at the Secret that transportSecurity.kafkaSecret names"
        ) from error


def _guarded(brokers: Brokers, call: Callable[[], _Answer]) -> _Answer:
    try:
        return call()
    except (KafkaException, TimeoutError) as error:
        raise KafkaUnavailable(f"Kafka at {brokers} does not answer: {_text(error)}") from error


def _settled(call: Callable[[], _Answer]) -> _Answer:
    """Ask for something of a group until its coordinator is settled, if that takes no longer than
    an answer may take."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while True:
        try:
            return call()
        except KafkaException as error:
            if error.args[0].code() not in COORDINATOR_MOVES or time.monotonic() > deadline:
                raise
        time.sleep(AGAIN_SECONDS)  # in a thread of its own; Kafka tells nobody when it is settled


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
