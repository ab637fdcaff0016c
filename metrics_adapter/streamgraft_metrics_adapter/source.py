"""Reads Prometheus: as many queries per refresh, however many objects and HPAs there are."""

import asyncio
import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from prometheus_api_client import PrometheusConnect
from prometheus_api_client.exceptions import PrometheusApiClientException
from requests import RequestException
from urllib3.util import Retry

from streamgraft_metrics_adapter import telemetry

log = logging.getLogger(__name__)

Rows = Sequence[Mapping[str, Any]]
"""A result vector of Prometheus: {"metric": labels, "value": [time, text]}."""

_TIMEOUT_SECONDS = 10


class SourceError(Exception):
    """Prometheus gave no usable answer; the message says to which query and why."""


Answers = Iterator[tuple[str, Rows | SourceError]]
"""Name of a query, and its answer. Each is read when it is asked for, so that only one of them is
in memory at a time."""


class Consumer(Protocol):
    """Who needs queries, and makes of their answers what the API serves."""

    def queries(self) -> Mapping[str, str]:
        """Return PromQL by name."""

    def take(self, evaluated_at: float, answers: Answers) -> None:
        """Take in one refresh, all of it evaluated at the same Unix time. Runs in a thread."""


class PrometheusSource:
    """One Prometheus server."""

    def __init__(self, url: str) -> None:
        # The next refresh is the retry; a retry in here would only delay it.
        self._client = PrometheusConnect(
            url=url.rstrip("/"), retry=Retry(total=0), timeout=_TIMEOUT_SECONDS
        )

    def read(self, queries: Mapping[str, str], evaluated_at: float) -> Answers:
        """Evaluate the queries, one after the other."""
        for name, promql in queries.items():
            telemetry.QUERIES.labels(name).inc()
            try:
                yield name, self.query(promql, evaluated_at)
            except SourceError as error:
                telemetry.QUERY_ERRORS.labels(name).inc()
                yield name, SourceError(f"query of {name}: {error}")

    def query(self, promql: str, evaluated_at: float) -> Rows:
        """Return the result vector of one query. Raises SourceError."""
        parameters = {"time": f"{evaluated_at:.3f}", "timeout": f"{_TIMEOUT_SECONDS}s"}
        try:
            rows: Rows = self._client.custom_query(promql, params=parameters)
        except (RequestException, PrometheusApiClientException, ValueError, KeyError) as error:
            raise SourceError(str(error)) from error
        return rows


class Refresher:
    """Evaluates all queries again and again, at times that are the same in every replica."""

    def __init__(self, source: PrometheusSource, consumers: Iterable[Consumer], seconds: float):
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
        """Refresh once."""
        with telemetry.REFRESH_SECONDS.time():
            for consumer in self._consumers:
                await asyncio.to_thread(self._refresh, consumer, evaluated_at)

    def _refresh(self, consumer: Consumer, evaluated_at: float) -> None:
        consumer.take(evaluated_at, self._source.read(consumer.queries(), evaluated_at))
