"""Questions to the demo's Prometheus."""

import math
from collections.abc import Sequence
from typing import Any

import aiohttp

from dashboards.generate import answered
from examples.flights.settings import JOB, NAMESPACE, REGION

_WHERE = f'namespace="{NAMESPACE}", streams_job="{JOB}", region="{REGION}"'

UTILIZATION = (
    f"sum(rate(streamgraft_pe_busy_seconds_total{{{_WHERE}}}[10s]))"
    f" / sum(streamgraft_pe_slots{{{_WHERE}}} and streamgraft_pe_shards{{{_WHERE}}} > 0)"
)
TIMEOUT = aiohttp.ClientTimeout(total=10)


class Prometheus:
    """A client within one event loop; use as an async context manager."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._session = aiohttp.ClientSession(timeout=TIMEOUT)

    async def __aenter__(self) -> "Prometheus":
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self._session.close()

    async def vector(self, query: str) -> list[dict[str, Any]]:
        """Return the result of an instant query. Raises ValueError for an error answer."""
        url = f"{self._url}/api/v1/query"
        async with self._session.get(url, params={"query": query}) as response:
            answer = await response.json()
        if answer["status"] != "success":
            raise ValueError(f"{query}: {answer.get('error')}")
        result: list[dict[str, Any]] = answer["data"]["result"]
        return result

    async def number(self, query: str) -> float | None:
        """Return the only value of an instant query; None if there is none."""
        result = await self.vector(query)
        value = float(result[0]["value"][1]) if result else math.nan
        return None if math.isnan(value) else value

    async def empty(self, asked: Sequence[str]) -> list[str]:
        """Return those of the queries that have no result, or nothing but NaN."""
        results = {query: await self.vector(query) for query in asked}
        return [
            query
            for query, result in results.items()
            if all(math.isnan(float(item["value"][1])) for item in result)
        ]


def dashboard_queries() -> list[str]:
    """Return the queries of the Grafana dashboards that must have data, for the demo's job."""
    chosen = {"namespace": NAMESPACE, "job": JOB, "region": REGION, "pe": ".+"}
    return answered({**chosen, "__rate_interval": "5m"})
