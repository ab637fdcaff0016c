"""Records of one size after another into a topic, and when those that have an id came out of one.

Times are those that Kafka's clients put on the records: of the PE's producer on this machine, so
that the clock is one.
"""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.traffic import CRITICAL
from streamgraft_common.record_size import LARGEST_RECORD_BYTES

QUIET_SECONDS = 20.0
"""Without any record for so long, no more are expected."""


def create_topic(servers: str, topic: str) -> None:
    """Create a topic of one partition that takes large records."""
    wanted = NewTopic(topic, 1, 1, config={"max.message.bytes": str(LARGEST_RECORD_BYTES)})
    admin = AdminClient({"bootstrap.servers": servers})  # kept until it has answered
    admin.create_topics([wanted])[topic].result(30)


@dataclass
class Sender:
    """Numbered records with a payload. Times are Unix seconds, by id."""

    servers: str
    topic: str
    sent_at: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": self.servers,
                "message.max.bytes": LARGEST_RECORD_BYTES,
                "queue.buffering.max.kbytes": 262_144,
                "linger.ms": 5,
                "log_level": CRITICAL,
            }
        )

    def send(self, size: int, count: int, per_second: float | None = None) -> None:
        """Send so many, as fast as they go or at a pace."""
        pause = 1 / per_second if per_second else 0.0
        payload = "x" * size
        for number in self.next(count):
            value = f'{{"id":{number},"payload":"{payload}"}}'
            self.sent_at[number] = time.time()
            while True:
                try:
                    self._producer.produce(self.topic, value)
                    break
                except BufferError:
                    self._producer.poll(0.05)
            self._producer.poll(0)
            if pause:
                time.sleep(pause)
        if left := self._producer.flush(60):
            raise RuntimeError(f"{left} records could not be sent")

    def next(self, count: int) -> range:
        """Return the ids that so many records will have."""
        first = len(self.sent_at)
        return range(first, first + count)


class Reader:
    """Reads a topic from its end on, and notes when its records were sent and received."""

    def __init__(self, servers: str, topic: str) -> None:
        self.written: dict[int, float] = {}
        """Unix time that the producer put on the record, by id."""
        self.received: dict[int, float] = {}
        """Unix time at which it was read here, by id."""
        self.doubled = 0
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "hop",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "fetch.message.max.bytes": LARGEST_RECORD_BYTES,
                "fetch.max.bytes": 4 * LARGEST_RECORD_BYTES,
                "receive.message.max.bytes": 5 * LARGEST_RECORD_BYTES,
                "queued.max.messages.kbytes": 131_072,
                "fetch.wait.max.ms": 10,
                "log_level": CRITICAL,
            }
        )
        partition = TopicPartition(topic, 0)
        partition.offset = self._consumer.get_watermark_offsets(partition, timeout=30)[1]
        self._consumer.assign([partition])

    def until(self, ids: range) -> None:
        """Read until all of these came. Raises RuntimeError if none does for a while."""
        missing = set(ids) - self.received.keys()
        last = time.monotonic()
        while missing:
            for message in self._come():
                if message.error() is None:
                    last = time.monotonic()
                    missing.discard(self._note(message.value() or b"", message.timestamp()[1]))
            if time.monotonic() - last > QUIET_SECONDS:
                raise RuntimeError(f"{len(missing)} of {len(ids)} records did not come")

    def _come(self) -> list[Message]:
        """Return what is there; if nothing is, the first that comes."""
        if (first := self._consumer.poll(0.05)) is None:
            return []
        return [first, *self._consumer.consume(1000, 0)]

    def close(self) -> None:
        """Stop reading."""
        self._consumer.close()

    def _note(self, value: bytes, milliseconds: int) -> int:
        # The payload may have megabytes: only what is before it is parsed.
        head = value[:64].partition(b',"payload"')[0].rstrip(b"}") + b"}"
        number = int(json.loads(head)["id"])
        self.doubled += number in self.received
        self.written[number] = milliseconds / 1000
        self.received[number] = time.time()
        return number


@contextmanager
def reading(servers: str, topic: str) -> Iterator[Reader]:
    """Read a topic for a while."""
    reader = Reader(servers, topic)
    try:
        yield reader
    finally:
        reader.close()
