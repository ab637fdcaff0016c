"""Evaluates all queries again and again, at the same times in every replica."""

import asyncio
import time
from collections.abc import Iterable
from typing import Protocol

from streamgraft_metrics_adapter import telemetry
from streamgraft_metrics_adapter.prometheus.source import Source


class Consumer(Protocol):
    """Whoever evaluates queries at every refresh."""

    async def refresh(self, evaluated_at: float, source: Source) -> None:
        """Evaluate its queries, all at the same Unix time, and keep what the API serves."""


class Refresher:
    """Evaluates all queries again and again, at times that are the same in every replica."""

    def __init__(self, source: Source, consumers: Iterable[Consumer], seconds: float):
        self._source = source
        self._consumers = tuple(consumers)
        self._seconds = seconds
        # A scrape's samples carry the time at which it began, so they come in a little later.
        self._settling = min(1.0, seconds / 4)

    async def run(self) -> None:
        """Refresh for ever."""
        while True:
            evaluated_at = self.evaluation_time(time.time())
            await self.refresh(evaluated_at)
            due = evaluated_at + self._seconds + self._settling
            await asyncio.sleep(max(0.0, due - time.time()))

    def evaluation_time(self, now: float) -> float:
        """Return the latest whole multiple of the interval that all samples are in for."""
        return (now - self._settling) // self._seconds * self._seconds

    async def refresh(self, evaluated_at: float) -> None:
        """Refresh once: while one consumer takes in an answer, Prometheus works for another."""
        with telemetry.REFRESH_SECONDS.time():
            async with asyncio.TaskGroup() as group:
                for consumer in self._consumers:
                    group.create_task(consumer.refresh(evaluated_at, self._source))
