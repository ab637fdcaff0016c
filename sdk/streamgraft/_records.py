"""Records of topics as rows of JSON: written, and read up to the end, to a count, or for ever."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

_POLL_SECONDS = 0.2
_REQUEST_SECONDS = 10.0
_QUIET_SECONDS = 2.0
"""So long may nothing come before whoever waits is told."""

Settings = Mapping[str, str]
"""Properties of librdkafka, of which `bootstrap.servers` is needed."""


def write(
    settings: Settings, topic: str, rows: Iterable[Mapping[str, Any]], key: str | None = None
) -> int:
    """Write rows as JSON records and return their number.

    `key`: the column whose text becomes the record's key. Raises KeyError for a row without it,
    KafkaException for a record that the brokers refuse, TimeoutError if they do not answer, which
    says how many were written.
    """
    failures: list[Any] = []

    def delivered(error: Any, _: Any) -> None:
        if error:
            failures.append(error)

    producer, queued = Producer(dict(settings)), 0
    stuck = False
    try:
        for row in rows:
            record = (topic, json.dumps(row), None if key is None else str(row[key]))
            stuck = not _queued(producer, record, delivered)
            if stuck:
                break
            producer.poll(0)
            queued += 1
    finally:
        left = producer.flush(_REQUEST_SECONDS)
    if failures:
        raise KafkaException(failures[0])
    if left or stuck:
        raise TimeoutError(f"the brokers do not answer, only {queued - left} records were written")
    return queued


def _queued(
    producer: Producer, record: tuple[str, str, str | None], delivered: Callable[[Any, Any], None]
) -> bool:
    """Queue a record; return whether there was room before long, which deliveries make."""
    deadline = time.monotonic() + _REQUEST_SECONDS
    while time.monotonic() < deadline:
        try:
            producer.produce(*record, on_delivery=delivered)
        except BufferError:
            producer.poll(_POLL_SECONDS)
        else:
            return True
    return False


def exists(settings: Settings, topic: str) -> bool:
    """Return whether a topic is there, or comes when it is written. Raises KafkaException.

    A producer keeps records of a topic that is not there, and hopes for it.
    """
    found = Producer(dict(settings)).list_topics(topic, _REQUEST_SECONDS).topics[topic]
    return found.error is None or found.error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART


def create(settings: Settings, topic: str, partitions: int) -> None:
    """Create a topic unless it is there. Raises KafkaException."""
    admin = AdminClient(dict(settings))  # it must live until the answer is there
    made = admin.create_topics([NewTopic(topic, partitions)])[topic]
    try:
        made.result(_REQUEST_SECONDS)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise


def read(
    settings: Settings,
    topic: str,
    *,
    count: int | None,
    follow: bool = False,
    seconds: float = 60,
    settle_seconds: float = 0,
    tell: Callable[[int], None] = lambda rows: None,
) -> Iterator[Any]:
    """Yield the committed rows of a topic from its beginning.

    `count`: stop behind so many, for which it waits `seconds` from one to the next, and behind all
    that come in the `settle_seconds` after them. Without a count it stops at the present end, or
    with `follow` never. `tell`: called with the number of rows when the next one of a count takes
    longer than two seconds. Raises KafkaException, and TimeoutError, which says what was there.
    """
    own = {"isolation.level": "read_committed", "enable.auto.commit": "false"}
    own["enable.partition.eof"] = "true"
    consumer = Consumer({"group.id": "streamgraft.records", **settings, **own})
    try:
        found = consumer.list_topics(topic, _REQUEST_SECONDS).topics[topic]
        if found.error:
            raise KafkaException(found.error)
        consumer.assign([TopicPartition(topic, number, 0) for number in found.partitions])
        left = {*found.partitions}
        if count is None:
            yield from _up_to_the_end(consumer, left, follow)
        else:
            yield from _counted(consumer, topic, left, count, seconds, tell)
            if settle_seconds:
                yield from _settled(consumer, left, settle_seconds, seconds)
    finally:
        consumer.close()


def _up_to_the_end(consumer: Consumer, left: set[int], follow: bool) -> Iterator[Any]:
    while left or follow:
        yield from _polled(consumer, left)


def _counted(
    consumer: Consumer,
    topic: str,
    left: set[int],
    count: int,
    seconds: float,
    tell: Callable[[int], None],
) -> Iterator[Any]:
    last: list[Any] = []
    read, since, told = 0, time.monotonic(), False
    while read < count:
        for row in _polled(consumer, left):
            last, read, since, told = [*last[-4:], row], read + 1, time.monotonic(), False
            yield row
        if read < count and not told and time.monotonic() > since + _QUIET_SECONDS:
            told = True
            tell(read)
        if read < count and time.monotonic() > since + seconds:
            raise TimeoutError(
                f"topic {topic} has {read} rows after {seconds:.0f} s, not {count}: {last}"
            )


def _settled(
    consumer: Consumer, left: set[int], settle_seconds: float, seconds: float
) -> Iterator[Any]:
    """Yield what comes in `settle_seconds`, and what is there, though brokers may be slower."""
    since = time.monotonic()
    while time.monotonic() < since + (max(settle_seconds, seconds) if left else settle_seconds):
        yield from _polled(consumer, left)


def _polled(consumer: Consumer, left: set[int]) -> list[Any]:
    """Return the row that comes within a moment, if any does.

    `left`: partitions whose end has not been reached yet.
    """
    message = consumer.poll(_POLL_SECONDS)
    if message is None:
        return []
    error = message.error()
    if error is None:
        return [json.loads(message.value() or b"null")]
    if error.code() != KafkaError._PARTITION_EOF:
        raise KafkaException(error)
    left.discard(message.partition())
    return []
