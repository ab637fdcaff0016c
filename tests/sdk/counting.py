"""Records of some keys, and the counts that an application makes of them."""

import json
import time
from collections import Counter

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from streamgraft_local import Cluster

KEYS = 40


class Streams:
    """The topics of a test."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.servers = cluster.bootstrap_servers
        self.source = f"{namespace}-in"
        self._producer = Producer({"bootstrap.servers": self.servers})
        self.sent: Counter[str] = Counter()
        admin = AdminClient({"bootstrap.servers": self.servers})
        for created in admin.create_topics([NewTopic(self.source, 1, 1)]).values():
            created.result()

    def send(self, count: int, pause: float = 0.0) -> None:
        """Send records, dealt out to all keys. `pause`: seconds each, where that counts."""
        for number in range(count):
            key = f"k{number % KEYS}"
            self._producer.produce(self.source, json.dumps({"key": key, "pause": pause}))
            self.sent[key] += 1
        assert self._producer.flush(30) == 0

    def counted(self, sink: str, factor: int = 1) -> list[tuple[str, int]]:
        """Wait until a sink has the final count of each key; return all that it has.

        `factor`: what it multiplies counts by.
        """
        wanted = {key: count * factor for key, count in self.sent.items()}
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": "test"})
        consumer.assign([TopicPartition(sink, 0, 0)])
        found: list[tuple[str, int]] = []
        deadline = time.monotonic() + 120
        try:
            while dict(found) != wanted:
                assert time.monotonic() < deadline, (sink, dict(found), wanted)
                if (message := consumer.poll(0.2)) and not message.error():
                    row = json.loads(message.value() or b"{}")
                    found.append((row["key"], row["count"]))
        finally:
            consumer.close()
        return found
