"""Records of some keys, and the counts that an application makes of them."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.producers import idempotent

from streamgraft_local import Cluster

KEYS = 40
PATIENCE_SECONDS = 120.0


class Streams:
    """The topics of a test, of one partition each."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.servers = cluster.bootstrap_servers
        self.source = f"{namespace}-in"
        self._producer = idempotent(self.servers)
        self.sent: Counter[str] = Counter()
        admin = AdminClient({"bootstrap.servers": self.servers})
        for created in admin.create_topics([NewTopic(self.source, 1, 1)]).values():
            created.result()

    def send(self, count: int, pause: float = 0.0) -> None:
        """Send records, dealt out to all keys; ids count all of them. `pause`: seconds each, where
        that counts."""
        first = self.sent.total()
        for number in range(count):
            key = f"k{number % KEYS}"
            record = {"key": key, "pause": pause, "id": first + number}
            self._producer.produce(self.source, json.dumps(record))
            self.sent[key] += 1
        assert self._producer.flush(30) == 0

    def counted(self, sink: str, factor: int = 1) -> list[tuple[str, int]]:
        """Wait until a sink has the final count of each key; return all that it has.

        `factor`: what it multiplies counts by.
        """
        wanted = {key: count * factor for key, count in self.sent.items()}
        rows = self.read(sink, lambda rows: dict(_counts(rows)) == wanted)
        return _counts(rows)

    def copied(self, sink: str) -> list[int]:
        """Wait until a sink has each record that was sent; return the ids of all that it has."""
        wanted = set(range(self.sent.total()))
        return _ids(self.read(sink, lambda rows: set(_ids(rows)) == wanted))

    def read(
        self, sink: str, complete: Callable[[list[dict[str, Any]]], bool] = lambda rows: True
    ) -> list[dict[str, Any]]:
        """Read all that is committed in a topic, to its end, until that is complete."""
        settings = {"group.id": "test", "isolation.level": "read_committed"}
        settings |= {"bootstrap.servers": self.servers}
        consumer = Consumer({**settings, "enable.partition.eof": True})
        consumer.assign([TopicPartition(sink, 0, 0)])
        rows: list[dict[str, Any]] = []
        at_end, deadline = False, time.monotonic() + PATIENCE_SECONDS
        try:
            while not (at_end and complete(rows)):
                assert time.monotonic() < deadline, (sink, rows[-2 * KEYS :], self.sent)
                if (message := consumer.poll(0.2)) is None:
                    continue
                if (error := message.error()) is None:
                    at_end = False
                    rows.append(json.loads(message.value() or b"{}"))
                elif error.code() == KafkaError._PARTITION_EOF:
                    at_end = True
        finally:
            consumer.close()
        return rows


def repeated(counts: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return the counts of a key that are no more than one before: of a batch that was written
    twice, or counted from an older state."""
    last: dict[str, int] = {}
    found = []
    for key, count in counts:
        if count <= last.get(key, 0):
            found.append((key, count))
        last[key] = count
    return found


def _counts(rows: Iterable[dict[str, Any]]) -> list[tuple[str, int]]:
    return [(row["key"], row["count"]) for row in rows]


def _ids(rows: Iterable[dict[str, Any]]) -> list[int]:
    return [row["id"] for row in rows]
