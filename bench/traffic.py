"""Load with numbered records, and what came out of it.

Every record has an id and a key. The probe notes when each id arrives, so that losses, duplicates,
order and gaps can be told exactly.
"""

import asyncio
import json
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.partitioner import key_group

CRITICAL = 2
"""Level of Kafka clients' logs: brokers that are killed on purpose are no news."""
TICK_SECONDS = 0.02
"""Between two looks at what is to be sent: a producer's usual linger, and as few requests."""
QUIET_SECONDS = 30.0
"""Without any output for so long, nothing more is expected."""


@dataclass(frozen=True)
class Arrival:
    """One output record: seconds since the epoch, id and key."""

    at: float
    id: int
    key: str
    count: int = 1
    """Of results that count the records of their key."""


@dataclass
class Arrivals:
    """All outputs, in the order of arrival."""

    items: list[Arrival] = field(default_factory=list)

    def since(self, first: int) -> "Arrivals":
        """Return those from a number on."""
        return Arrivals(self.items[first:])

    def newest_id(self) -> int:
        """Return the largest id that came, -1 before any."""
        return max((item.id for item in self.items), default=-1)

    def lost(self, sent: int) -> int:
        """Return how many of the ids 0…sent-1 never came."""
        return sent - len({item.id for item in self.items})

    def duplicated(self) -> int:
        """Return how many outputs were there once before."""
        return sum(count - 1 for count in Counter(item.id for item in self.items).values())

    def out_of_order(self) -> int:
        """Return how many outputs came after a later id of the same key."""
        newest: dict[str, int] = {}
        late = 0
        for item in self.items:
            late += item.id < newest.get(item.key, -1)
            newest[item.key] = max(item.id, newest.get(item.key, -1))
        return late

    def longest_gap(self, keys: Sequence[str], start: float, end: float) -> float:
        """Return the longest time in [start, end] without an output of any of `keys`, seconds."""
        wanted = set(keys)
        times = [item.at for item in self.items if item.key in wanted and start <= item.at <= end]
        if not times:
            return end - start
        return max(b - a for a, b in zip([start, *times], [*times, end], strict=True))


def create_topic(bootstrap_servers: str, topic: str, partitions: int) -> None:
    """Create a topic and wait until it is there."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(30)


class Load:
    """Sends `rate` records a second, which may be set anew at any time, ids ascending, keys in
    turn, until the context is left."""

    def __init__(self, bootstrap_servers: str, topic: str, keys: Sequence[str], rate: float):
        self.sent = 0
        self.sent_at: list[float] = []
        """Unix time of each record, by id."""
        self.rate = rate
        self._topic, self._keys = topic, keys
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "linger.ms": 5,
                "enable.idempotence": True,
                "log_level": CRITICAL,
            }
        )
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        due, before = 0.0, time.monotonic()
        while not self._stop.wait(TICK_SECONDS):
            now = time.monotonic()
            due += (now - before) * self.rate
            before = now
            while self.sent < int(due):
                key = self._keys[self.sent % len(self._keys)]
                value = json.dumps({"id": self.sent, "key": key, "count": 1})
                self._producer.produce(self._topic, value, key)
                self.sent_at.append(time.time())
                self.sent += 1
            self._producer.poll(0)
        if left := self._producer.flush(30):
            raise RuntimeError(f"{left} records could not be sent")


class Probe:
    """Reads an output topic from its beginning and notes the arrivals."""

    def __init__(self, bootstrap_servers: str, topic: str, partitions: int):
        self.arrivals = Arrivals()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": "probe",
                "enable.auto.commit": False,
                # Otherwise nearly each record is a fetch of its own, on the broker's CPU.
                "fetch.min.bytes": 1 << 20,
                "fetch.wait.max.ms": 10,
                "auto.offset.reset": "earliest",
                "log_level": CRITICAL,
            }
        )
        self._consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="probe")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._consumer.close()

    async def drained(self, sent: int) -> None:
        """Wait until the ids 0…sent-1 came out, or nothing has for a while."""
        seen, quiet_since = -1, time.monotonic()
        while self.arrivals.lost(sent) and time.monotonic() - quiet_since < QUIET_SECONDS:
            if len(self.arrivals.items) != seen:
                seen, quiet_since = len(self.arrivals.items), time.monotonic()
            await asyncio.sleep(0.5)

    def _run(self) -> None:
        while not self._stop.is_set():
            for message in self._consumer.consume(1000, 0.01):
                if message.error() is None:
                    row = json.loads(message.value() or b"{}")
                    result = Arrival(time.time(), row["id"], row["key"], row.get("count", 1))
                    self.arrivals.items.append(result)


def keys_by_group(groups: int, per_group: int) -> dict[int, list[str]]:
    """Return `per_group` keys for each key group."""
    found: dict[int, list[str]] = defaultdict(list)
    number = 0
    while len(found) < groups or any(len(keys) < per_group for keys in found.values()):
        key = f"key-{number}"
        group = key_group(key.encode(), groups)
        if len(found[group]) < per_group:
            found[group].append(key)
        number += 1
    return dict(sorted(found.items()))
