"""Live views share what costs time: a region's answer is made once per refresh."""

import dataclasses
from typing import cast

import pytest

from streamgraft_autoscaler import NotReady
from streamgraft_autoscaler.readiness import Reason
from streamgraft_common.resources import PARALLEL_REGION
from streamgraft_metrics_adapter.api.routes import live
from streamgraft_metrics_adapter.regions import Region, region_of
from streamgraft_metrics_adapter.signals.provider import Provider, Reading


class PlayedProvider:
    """Counts how often a region is read."""

    def __init__(self) -> None:
        self.evaluated_at = 1.0
        self.reads = 0

    def read_all(self, region: Region) -> list[Reading]:
        """Return one signal that tells of the read."""
        self.reads += 1
        nothing = NotReady(Reason.NO_DATA, f"read {self.reads}")
        return [Reading(region, "total_lag", nothing, None)]


@pytest.fixture
def region() -> Region:
    """Return a region."""
    spec = {"job": "flights", "region": "enrich", "width": 2, "maxWidth": 4, "key": ["k"]}
    return region_of(PARALLEL_REGION.manifest("a", "ns", spec))


async def event(views: live.LiveViews, region: Region) -> str:
    """Return the first event of a new stream."""
    events = views.stream(lambda: [region]).body_iterator
    assert await anext(aiter(events)) == "retry: 1000\n\n"
    return str(await anext(aiter(events)))


async def test_streams_share_a_region_until_the_next_refresh(region: Region) -> None:
    provider = PlayedProvider()
    views = live.LiveViews(cast(Provider, provider), lambda: 100.0)
    assert await event(views, region) == await event(views, region)
    assert provider.reads == 1
    provider.evaluated_at = 2.0
    assert "read 2" in await event(views, region)
    changed = dataclasses.replace(region, name="b")
    assert '"b"' in await event(views, changed)


async def test_what_is_stale_by_now_is_not_shown_as_it_was(region: Region) -> None:
    now = [100.0]
    views = live.LiveViews(cast(Provider, PlayedProvider()), lambda: now[0])
    await event(views, region)
    now[0] += 10.0
    assert "read 2" in await event(views, region)
