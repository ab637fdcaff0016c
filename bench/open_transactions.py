"""Pods that are stopped amid a transaction of theirs, in a partition that others write as well."""

import os
import signal
import time
from collections.abc import Container, Sequence
from typing import Any

import psutil
from confluent_kafka import OFFSET_END, Consumer, IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from bench.traffic import CRITICAL

ATTEMPTS = 50
SETTLED_SECONDS = 1.0
"""Transactions of others have ended by then, and the next ones, too."""
PATIENCE_SECONDS = 30.0


class SharedPartition:
    """A topic of one partition, and which transactions are open in it."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": "open",
                "isolation.level": "read_uncommitted",
                "fetch.wait.max.ms": 5,
                "log_level": CRITICAL,
            }
        )
        self._admin = AdminClient({"bootstrap.servers": bootstrap_servers})
        self._place = TopicPartition(topic, 0)

    def wait(self, keys: Container[str]) -> None:
        """Block until a record of one of these keys is written. Raises TimeoutError."""
        self._consumer.assign([TopicPartition(self._place.topic, 0, OFFSET_END)])
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            for message in self._consumer.consume(1, 0.1):
                if message.error() is None and (message.key() or b"").decode() in keys:
                    return
        raise TimeoutError(f"no record in {self._place.topic}")

    def held_back(self) -> bool:
        """Return whether a transaction stays open for longer than others take. Blocks."""
        time.sleep(SETTLED_SECONDS)
        before = self._end(IsolationLevel.READ_COMMITTED)
        time.sleep(SETTLED_SECONDS)
        stable = self._end(IsolationLevel.READ_COMMITTED)
        return stable == before and self._end(IsolationLevel.READ_UNCOMMITTED) > stable

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()

    def _end(self, isolation: IsolationLevel) -> int:
        latest: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        found = self._admin.list_offsets({self._place: latest}, isolation_level=isolation)[
            self._place
        ]
        return int(found.result(PATIENCE_SECONDS).offset)


def stop_amid(
    family: Sequence[psutil.Process], keys: Container[str], shared: SharedPartition
) -> float:
    """Stop processes (SIGSTOP) that have a transaction open with records of these keys.

    Goes on until one was met, and returns when it was stopped (Unix seconds). Blocks. Raises
    TimeoutError.
    """
    # The JVM first, at once: a transaction is over in milliseconds.
    pids = [item.pid for item in sorted(family, key=lambda item: item.name() != "java")]
    for _ in range(ATTEMPTS):
        shared.wait(keys)
        _send(pids, signal.SIGSTOP)
        stopped_at = time.time()
        if shared.held_back():
            return stopped_at
        _send(pids, signal.SIGCONT)
    raise TimeoutError("no transaction was met that was open")


def _send(pids: Sequence[int], number: signal.Signals) -> None:
    for pid in pids:
        os.kill(pid, number)
