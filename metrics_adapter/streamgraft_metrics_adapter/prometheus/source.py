"""Reads Prometheus: as many queries per refresh, however many objects and HPAs there are."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar, TypeVarTuple

from prometheus_api_client import PrometheusConnect
from prometheus_api_client.exceptions import PrometheusApiClientException
from urllib3.util import Retry

from streamgraft_metrics_adapter import telemetry
from streamgraft_metrics_adapter.prometheus.decoding import QuerySession
from streamgraft_metrics_adapter.prometheus.server import PrometheusServer

Row = tuple[Mapping[str, str], float]
"""One element of a result vector: its labels and its value."""

Series = tuple[Mapping[str, str], list[tuple[float, float]]]
"""One element of a result matrix: its labels, and its values with their Unix times."""

_TIMEOUT_SECONDS = 10
_RANGE_TIMEOUT_SECONDS = 60
"""Nobody waits for the answer to a range query."""


T = TypeVar("T")
_Arguments = TypeVarTuple("_Arguments")


class SourceError(Exception):
    """Prometheus gave no usable answer; the message says to which query and why."""


class Source(Protocol):
    """Whatever evaluates PromQL."""

    async def rows(self, name: str, promql: str, evaluated_at: float) -> Iterator[Row]:
        """Return the result vector at a Unix time; `name`: of the query, for people.

        Raises SourceError, and so may the iterator, after some rows.
        """


class RangeSource(Protocol):
    """Whatever evaluates PromQL over a range of time."""

    async def series(
        self, name: str, promql: str, times: tuple[float, float], step: float
    ) -> Iterator[Series]:
        """Return the result matrix from the first to the last of two Unix times; step in seconds.

        Raises SourceError, and so may the iterator, after some series.
        """


async def answers(
    source: Source, queries: Mapping[str, str], evaluated_at: float
) -> AsyncGenerator[Iterator[Row], None]:
    """Yield the result of each query (PromQL by name); while one is read, the next is evaluated.

    Close it. Raises SourceError.
    """
    waiting = iter(queries.items())

    def next_one() -> asyncio.Task[Iterator[Row]] | None:
        asked = next(waiting, None)
        return asyncio.create_task(source.rows(*asked, evaluated_at)) if asked else None

    pending = next_one()
    try:
        while pending is not None:
            rows = await pending
            pending = next_one()
            yield rows
    finally:
        if pending is not None:
            pending.cancel()


class PrometheusSource:
    """One Prometheus server, asked by `threads` threads that are nobody else's.

    There are no retries: the next refresh is one. Raises CredentialsError.
    """

    def __init__(self, server: PrometheusServer, threads: int = 2) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="prometheus")
        session = QuerySession()
        server.prepare(session)
        self._client = PrometheusConnect(
            url=server.url.rstrip("/"),
            retry=Retry(total=0),
            session=session,
            timeout=_TIMEOUT_SECONDS + 1,
        )

    async def rows(self, name: str, promql: str, evaluated_at: float) -> Iterator[Row]:
        """Return the result vector of one query. Raises SourceError, also while it is read."""
        telemetry.QUERIES.labels(name).inc()
        with _named(name):
            elements = await self._in_thread(self._query, promql, evaluated_at)
        return _decoded(name, rows_of(elements))

    async def series(
        self, name: str, promql: str, times: tuple[float, float], step: float
    ) -> Iterator[Series]:
        """Return the result matrix of one query, from the first to the last of two Unix times, in
        whole seconds as is `step`. Raises SourceError, also while it is read."""
        telemetry.QUERIES.labels(name).inc()
        with _named(name):
            elements = await self._in_thread(self._query_range, promql, times, step)
        return _decoded(name, series_of(elements))

    async def _in_thread(self, query: Callable[[*_Arguments], T], *arguments: *_Arguments) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, query, *arguments)

    def _query(self, promql: str, evaluated_at: float) -> Iterable[Any]:
        parameters = {"time": f"{evaluated_at:.3f}", "timeout": f"{_TIMEOUT_SECONDS}s"}
        with _refused():
            elements: Iterable[Any] = self._client.custom_query(promql, params=parameters)
            return elements

    def _query_range(self, promql: str, times: tuple[float, float], step: float) -> Iterable[Any]:
        first, last = (datetime.fromtimestamp(time, UTC) for time in times)
        parameters = {"timeout": f"{_RANGE_TIMEOUT_SECONDS}s"}
        with _refused():
            elements: Iterable[Any] = self._client.custom_query_range(
                promql, first, last, f"{step:g}", parameters, _RANGE_TIMEOUT_SECONDS + 1
            )
            return elements


@contextmanager
def _named(query: str) -> Iterator[None]:
    """Count errors of a query, and name it in them."""
    try:
        yield
    except SourceError as error:
        telemetry.QUERY_ERRORS.labels(query).inc()
        raise SourceError(f"query of {query}: {error}") from error


@contextmanager
def _refused() -> Iterator[None]:
    """Make one kind of error of all that a query may fail with; those of requests are OSErrors."""
    try:
        yield
    except (OSError, PrometheusApiClientException, LookupError, ValueError) as error:
        raise SourceError(str(error)) from error


def _decoded(query: str, found: Iterator[T]) -> Iterator[T]:
    with _named(query):
        yield from found


def rows_of(elements: Iterable[Any]) -> Iterator[Row]:
    """Yield the rows of a result vector, without its histograms: whoever exports one under the name
    of a number has no number. Raises SourceError if it is no vector."""
    try:
        for element in elements:
            if "histogram" not in element:
                yield element["metric"], float(element["value"][1])
    except (LookupError, ValueError, TypeError) as error:
        raise SourceError(f"the answer is no vector: {error!r}") from error


def series_of(elements: Iterable[Any]) -> Iterator[Series]:
    """Yield the series of a result matrix. Raises SourceError if it is none."""
    try:
        for element in elements:
            values = [(float(time), float(value)) for time, value in element["values"]]
            yield element["metric"], values
    except (LookupError, ValueError, TypeError) as error:
        raise SourceError(f"the answer is no matrix: {error!r}") from error
