"""Evaluates queries again and again, at the same times in every replica."""

import asyncio
import logging
import time
from typing import Protocol

from streamgraft_metrics_adapter import telemetry
from streamgraft_metrics_adapter.prometheus.source import Source

log = logging.getLogger(__name__)


class Consumer(Protocol):
    """Whoever evaluates queries at every refresh."""

    async def refresh(self, evaluated_at: float, source: Source) -> None:
        """Evaluate its queries, all at the same Unix time, and keep what the API serves."""


class Rhythm:
    """When queries are evaluated: at whole multiples of an interval (seconds)."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        # A scrape's samples carry the time at which it began, so they come in a little later.
        self._settling = min(1.0, seconds / 4)

    def evaluation_time(self, now: float) -> float:
        """Return the latest whole multiple of the interval that all samples are in for."""
        return (now - self._settling) // self.seconds * self.seconds

    def wait_seconds(self, evaluated_at: float, now: float) -> float:
        """Return how long to wait for the evaluation after one, 0 if it is late."""
        return max(evaluated_at + self.seconds + self._settling - now, 0.0)


class Refresher:
    """Keeps one consumer fresh, in a rhythm of its own: a slow one delays no other."""

    def __init__(self, source: Source, consumer: Consumer, seconds: float) -> None:
        self._source = source
        self._consumer = consumer
        self._rhythm = Rhythm(seconds)

    async def run(self) -> None:
        """Refresh for ever."""
        while True:
            evaluated_at = self._rhythm.evaluation_time(time.time())
            try:
                await self.refresh(evaluated_at)
            except Exception:  # the next refresh may succeed, and old values say that they are old
                log.exception("a refresh failed unexpectedly")
                telemetry.UNEXPECTED_ERRORS.labels("refresh").inc()
            await asyncio.sleep(self._rhythm.wait_seconds(evaluated_at, time.time()))

    async def refresh(self, evaluated_at: float) -> None:
        """Refresh once."""
        with telemetry.REFRESH_SECONDS.time():
            await self._consumer.refresh(evaluated_at, self._source)
