"""Reads the application's result topic while it is being written."""

import json
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from examples.flights.batch import Result
from examples.flights.comparison import flights_of, result_of
from examples.flights.settings import RESULT_TOPIC

_BATCH = 1000


class Results:
    """The last record of each key so far; no consumer group, so that nobody else is concerned.

    Use as a context manager.
    """

    def __init__(self, bootstrap_servers: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": "demo",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        self._last: dict[tuple[str, str], dict[str, Any]] = {}
        self._assigned = False
        self.records = 0

    def __enter__(self) -> "Results":
        return self

    def __exit__(self, *_error: object) -> None:
        self._consumer.close()

    def poll(self) -> None:
        """Read what is there now, without waiting for more."""
        if not self._assigned and not self._assign():
            return
        while messages := self._consumer.consume(_BATCH, timeout=0.05):
            for message in messages:
                error, value = message.error(), message.value()
                if error is not None:
                    if error.code() != KafkaError._PARTITION_EOF:
                        raise RuntimeError(f"topic {RESULT_TOPIC}: {error}")
                elif value is not None:
                    record = json.loads(value)
                    self._last[record["origin"], record["carrier"]] = record
                    self.records += 1

    @property
    def result(self) -> Result:
        """The statistics so far."""
        return result_of(list(self._last.values()))

    @property
    def flights(self) -> int:
        """Flights that have gone into the statistics so far."""
        return flights_of(self.result)

    def _assign(self) -> bool:
        topic = self._consumer.list_topics(RESULT_TOPIC, timeout=10).topics[RESULT_TOPIC]
        if topic.error is None and topic.partitions:
            self._consumer.assign(
                [TopicPartition(RESULT_TOPIC, part, OFFSET_BEGINNING) for part in topic.partitions]
            )
            self._assigned = True
        return self._assigned
