"""Reads Prometheus: a handful of queries per refresh, whatever the number of regions."""

import asyncio
import time
from typing import Any

from prometheus_api_client import PrometheusConnect
from prometheus_api_client.exceptions import PrometheusApiClientException
from requests import RequestException
from urllib3.util import Retry

from streamgraft_metrics_adapter import telemetry
from streamgraft_metrics_adapter.observations import Observations, collect
from streamgraft_metrics_adapter.queries import Input, queries

_TIMEOUT_SECONDS = 5


class SourceError(Exception):
    """Prometheus gave no usable answer; the message says which query and why."""


class PrometheusSource:
    """All inputs of all signals from one Prometheus server; durations in seconds."""

    def __init__(self, url: str, window_seconds: float, max_age_seconds: float) -> None:
        self._queries = queries(window_seconds, max_age_seconds)
        # The next refresh is the retry; a retry in here would only delay it.
        self._client = PrometheusConnect(
            url=url.rstrip("/"), retry=Retry(total=0), timeout=_TIMEOUT_SECONDS
        )

    async def read(self) -> Observations:
        """Evaluate all queries at the same time. Raises SourceError."""
        return await asyncio.to_thread(self._read)

    def _read(self) -> Observations:
        now = time.time()
        with telemetry.REFRESH_SECONDS.time():
            return collect(now, {name: self._query(name, now) for name in self._queries})

    def _query(self, name: Input, now: float) -> list[dict[str, Any]]:
        telemetry.QUERIES.labels(name.value).inc()
        parameters = {"time": f"{now:.3f}", "timeout": f"{_TIMEOUT_SECONDS}s"}
        try:
            rows: list[dict[str, Any]] = self._client.custom_query(
                self._queries[name], params=parameters
            )
        except (RequestException, PrometheusApiClientException, ValueError, KeyError) as error:
            telemetry.QUERY_ERRORS.labels(name.value).inc()
            raise SourceError(f"query of {name.value}: {error}") from error
        return rows
