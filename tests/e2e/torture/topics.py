"""The topics of a torture run: what went into the application, and what came out."""

import json
from collections.abc import Iterator
from typing import Any

from confluent_kafka import OFFSET_END, Consumer, KafkaError, TopicPartition
from tests.e2e.torture.verification import Input, Result

from bench.traffic import CRITICAL

PARTITIONS = 3
GROWTH_SECONDS = 3.0


class Reader:
    """Reads a topic from its beginning, partition by partition in order, as far as it goes."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": "torture",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
                "log_level": CRITICAL,
            },
        )
        self._consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
        self._at_end = set[int | None]()
        """Partitions that were read as far as they went."""

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield the rows that have come since the last call.

        Under load there are always more: it is over once each partition's end has been seen.
        """
        seen = set(self._at_end)
        while messages := self._consumer.consume(5000, 0.5):
            for message in messages:
                if (error := message.error()) is None:
                    self._at_end.discard(message.partition())
                    yield json.loads(message.value() or b"")
                elif error.code() == KafkaError._PARTITION_EOF:
                    self._at_end.add(message.partition())
                    seen.add(message.partition())
            if len(seen) == PARTITIONS:
                return

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()


class Growth:
    """Waits until a topic grows: a batch is being written then, and not committed yet, in Kafka if
    it is written by a transaction."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": "growth",
                "isolation.level": "read_uncommitted",
                "log_level": CRITICAL,
            }
        )
        self._ends = [TopicPartition(topic, number, OFFSET_END) for number in range(PARTITIONS)]

    def wait(self) -> int | None:
        """Return the partition of the next record; None if some seconds pass without. Blocks."""
        self._consumer.assign(self._ends)
        message = self._consumer.poll(GROWTH_SECONDS)
        return message.partition() if message is not None and message.error() is None else None

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()


class Topics:
    """All inputs and results so far. All three topics are outside of the application."""

    def __init__(self, bootstrap_servers: str, inputs: str, results: str, loose: str) -> None:
        self._readers = tuple(Reader(bootstrap_servers, item) for item in (inputs, results, loose))
        self.inputs: list[Input] = []
        self.results: list[Result] = []
        self.loose: list[tuple[Any, ...]] = []
        """Rows of the sink that asks for at least once."""

    def read(self) -> None:
        """Read what has come. Blocks."""
        inputs, results, loose = self._readers
        self.inputs += (Input(row["key"], row["id"]) for row in inputs.read())
        self.results += (_result(row) for row in results.read())
        self.loose += (tuple(row.values()) for row in loose.read())

    def close(self) -> None:
        """Close the connections."""
        for reader in self._readers:
            reader.close()


def _result(row: dict[str, Any]) -> Result:
    return Result(row["key"], row["n"], row["total"])
