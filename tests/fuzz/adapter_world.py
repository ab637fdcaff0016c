"""An adapter in one process with two tenants: one is good, the other sends what is drawn.

Prometheus and the API server are played: what they hand on is the input here.
"""

import asyncio
import time
from collections.abc import Iterator, Sequence
from typing import Any

from hypothesis import strategies as st

from streamgraft_autoscaler import NotReady
from streamgraft_common.kube import KubeClient, Store
from streamgraft_common.kube.config import KubeConfig
from streamgraft_common.resources import PARALLEL_REGION
from streamgraft_metrics_adapter.prometheus.queries import INPUT_LABEL, QUERIES, Input
from streamgraft_metrics_adapter.prometheus.source import Row
from streamgraft_metrics_adapter.regions import RegionCache
from streamgraft_metrics_adapter.settings import OWN_TARGETS
from streamgraft_metrics_adapter.signals.provider import Provider

NOWHERE = KubeClient(KubeConfig(server="http://127.0.0.1:1"))
GOOD, BAD = "good", "bad"
"""Namespaces."""

_STEADY: dict[Input, float] = {
    **dict.fromkeys((Input.LAG, Input.RESETS, Input.STATE_BYTES, Input.LAG_CHANGE), 0.0),
    Input.PARTITIONS: 4,
    Input.HISTORIES: 4,
    Input.ELEMENTS: 1,
    Input.IDLE_SHARE: 0.5,
    Input.INPUT_RATE: 100.0,
    Input.PROCESSING_RATE: 100.0,
    Input.LARGEST_RATE: 25.0,
    Input.MEDIAN_RATE: 25.0,
    Input.BUSY_SLOTS: 0.5,
    Input.WARM_SLOTS: 0.5,
    Input.SLOTS: 1.0,
    Input.BATCH_RATE: 4.0,
    Input.POSITION_AGE: 1.0,
}
_QUERY_OF = {part: query for query, parts in QUERIES.items() for part in parts}

TEXTS = st.text(max_size=20) | st.sampled_from(['"', "\n", "\\", '"} 1\n', "{{", "é", "0", "r"])
NUMBERS = st.floats() | st.sampled_from([0.0, -1.0, 5e-324, 1e308, -1e308, float("nan")])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


def region(namespace: str) -> dict[str, Any]:
    """Return a region of one channel."""
    spec = {"job": "j", "region": "r", "width": 1, "maxWidth": 4, "key": ["k"]}
    return {**PARALLEL_REGION.manifest("j-r", namespace, spec), "status": {"width": 1}}


class GivenRegions(Store):
    """A cache that hears of objects as a watch would tell of them."""

    def __init__(self) -> None:
        super().__init__(NOWHERE, "/none")
        self.synced.set()

    def tell(self, item: dict[str, Any]) -> None:
        """Hear of an object."""
        self._set(("" or item["metadata"]["namespace"], item["metadata"]["name"]), item)


class GivenAnswers:
    """Answers queries with the good tenant's rows and those that were drawn."""

    def __init__(self, drawn: Sequence[tuple[str, Row]] = ()) -> None:
        self._drawn = drawn

    async def rows(self, name: str, promql: str, evaluated_at: float) -> Iterator[Row]:
        """Answer."""
        return iter([*good_rows(name), *(row for query, row in self._drawn if query == name)])


def good_rows(query: str) -> list[Row]:
    """Return the good tenant's rows of a query."""
    labels = {"namespace": GOOD, "streams_job": "j", "region": "r", "stage": "0", "topic": "t"}
    inputs = {Input.SAMPLE_TIME: time.time(), **_STEADY}
    return [
        ({**labels, INPUT_LABEL: name.value}, value)
        for name, value in inputs.items()
        if _QUERY_OF[name] == query
    ]


class Tenants:
    """An adapter that knows the good tenant's region."""

    def __init__(self) -> None:
        self.regions = GivenRegions()
        self.regions.tell(region(GOOD))
        self.provider = Provider(
            RegionCache(self.regions),
            window_seconds=60.0,
            max_age_seconds=30.0,
            refresh_seconds=2.0,
            learned_from=OWN_TARGETS,
        )

    def refresh(self, drawn: Sequence[tuple[str, Row]] = ()) -> dict[str, float | str]:
        """Refresh; return the good tenant's signals, or why they have no value."""
        asyncio.run(self.provider.refresh(time.time(), GivenAnswers(drawn)))
        found = self.provider.region(GOOD, "j-r")
        return {
            reading.metric: reading.result.reason
            if isinstance(reading.result, NotReady)
            else reading.result.value
            for reading in self.provider.read_all(found)
        }
