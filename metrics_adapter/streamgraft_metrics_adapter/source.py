"""Reads Prometheus: as many queries per refresh, however many objects and HPAs there are."""

import asyncio
import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Protocol, Self

import aiohttp

from streamgraft_metrics_adapter import telemetry

Row = tuple[Mapping[str, str], float]
"""One element of a result vector: its labels and its value."""

_TIMEOUT_SECONDS = 10
_FIRST = re.compile(r'"result"\s*:\s*\[\s*')
"""Where the rows begin. Quotes within JSON's texts are escaped, so no label can hold this."""
_BETWEEN = re.compile(r"[\s,]*")


class SourceError(Exception):
    """Prometheus gave no usable answer; the message says to which query and why."""


class Source(Protocol):
    """Whatever evaluates PromQL."""

    async def rows(self, name: str, promql: str, evaluated_at: float) -> Iterator[Row]:
        """Return the result vector at a Unix time; `name`: of the query, for people.

        Raises SourceError, and so may the iterator, after some rows.
        """


class Consumer(Protocol):
    """Who needs queries, and makes of their answers what the API serves."""

    async def take(self, evaluated_at: float, source: Source) -> None:
        """Take in one refresh, all of it evaluated at the same Unix time."""


class PrometheusSource:
    """One Prometheus server; an asynchronous context manager.

    There are no retries: the next refresh is one.
    """

    def __init__(self, url: str) -> None:
        self._url = f"{url.rstrip('/')}/api/v1/query"
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(_TIMEOUT_SECONDS + 1),
            # To unpack megabytes would keep the event loop busy for longer than a turn.
            headers={"Accept-Encoding": "identity"},
        )

    async def __aenter__(self) -> Self:
        """Return itself."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connections."""
        await self._session.close()

    async def rows(self, name: str, promql: str, evaluated_at: float) -> Iterator[Row]:
        """Return the result vector of one query. Raises SourceError, also while it is read."""
        telemetry.QUERIES.labels(name).inc()
        with _named(name):
            answer = await self._answer(promql, evaluated_at)
        return _decoded(name, answer)

    async def _answer(self, promql: str, evaluated_at: float) -> str:
        form = {
            "query": promql,
            "time": f"{evaluated_at:.3f}",
            "timeout": f"{_TIMEOUT_SECONDS}s",
        }
        try:
            async with self._session.post(self._url, data=form) as response:
                body = await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise SourceError(str(error) or f"no answer within {_TIMEOUT_SECONDS} s") from error
        if response.status != 200:
            raise SourceError(f"{response.status}: {_message(body)}")
        return body.decode(errors="replace")


@contextmanager
def _named(query: str) -> Iterator[None]:
    """Count errors of a query, and name it in them."""
    try:
        yield
    except SourceError as error:
        telemetry.QUERY_ERRORS.labels(query).inc()
        raise SourceError(f"query of {query}: {error}") from error


def _decoded(query: str, answer: str) -> Iterator[Row]:
    with _named(query):
        yield from rows_of(answer)


def rows_of(answer: str) -> Iterator[Row]:
    """Yield the rows of an answer, each decoded when it is asked for. Raises SourceError.

    As a whole an answer of thousands of rows takes long, and all of it would be in memory at once.
    """
    decode = json.JSONDecoder().raw_decode
    begin = _FIRST.search(answer)
    if begin is None:
        raise SourceError(f"the answer is no vector: {answer[:200]}")
    place: re.Match[str] | None = begin
    try:
        while place and answer[place.end()] != "]":
            row, end = decode(answer, place.end())
            yield row["metric"], float(row["value"][1])
            place = _BETWEEN.match(answer, end)
    except (IndexError, ValueError, TypeError, KeyError) as error:
        raise SourceError(f"the answer can't be understood: {error!r}") from error


def _message(body: bytes) -> str:
    """Return what an error says; proxies answer with anything."""
    try:
        return str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        return body[:200].decode(errors="replace")


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
                    group.create_task(consumer.take(evaluated_at, self._source))
