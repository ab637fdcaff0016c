"""What a region's resource makes of its demand policy."""

from collections.abc import Callable
from typing import Any

import pytest

from streamgraft_autoscaler import DemandPolicy
from streamgraft_autoscaler.pricing import ASSUMED_CHANNEL_SECONDS
from streamgraft_common.adl import Autoscaling
from streamgraft_common.resources import PARALLEL_REGION
from streamgraft_metrics_adapter.learning.knowledge import Known
from streamgraft_metrics_adapter.regions import region_of
from streamgraft_metrics_adapter.signals.policies import policy_of

PAUSE = 2.0
"""Seconds that a shard is expected to stand still as long as none was measured."""


def change(before: int, after: int, **more: Any) -> dict[str, Any]:
    """Return a change that took 30 s to serve and 40 s in all, and moved two of eight shards."""
    return {
        "fromWidth": before,
        "toWidth": after,
        "epoch": 1,
        "requestedAt": "2026-01-01T00:00:00Z",
        "servingAt": "2026-01-01T00:00:30Z",
        "finishedAt": "2026-01-01T00:00:40Z",
        "movedShards": [0, 1],
        **more,
    }


def policy(*changes: dict[str, Any], **autoscaling: Any) -> DemandPolicy:
    """Return the policy of a region with these settings that has changed like this."""
    spec = {"job": "j", "region": "r", "width": 1, "maxWidth": 8, "key": ["k"]}
    spec |= {"autoscaling": autoscaling}
    body = PARALLEL_REGION.manifest("j-r", "ns", spec)
    region = region_of({**body, "status": {"width": 1, "changes": list(changes)}})
    return policy_of(region, Known(0.0), 0.0)


def price(*changes: dict[str, Any], **autoscaling: Any) -> float:
    """Return the price of a change in channel-seconds, if four channels were needed lately."""
    return policy(*changes, **autoscaling).price.hours(4) * 3600


@pytest.mark.parametrize(
    ("setting", "value", "expected"),
    [
        ("catchUpSeconds", 7.0, lambda made: made.catch_up_seconds),
        ("headroom", 0.5, lambda made: made.headroom),
        ("targetUtilization", 0.6, lambda made: made.target_utilization),
        ("minWidth", 2, lambda made: made.min_width),
        ("maxWidth", 3, lambda made: made.max_width),
    ],
)
def test_settings_reach_the_policy(
    setting: str, value: float, expected: Callable[[DemandPolicy], float]
) -> None:
    assert expected(policy()) != value
    assert expected(policy(**{setting: value})) == value


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([], ASSUMED_CHANNEL_SECONDS),
        ([change(1, 2)], 30 + 10 * 2 / 8 * 2 * PAUSE),
        ([change(1, 2, affectedShards=8)], 30 + 10 * 8 / 8 * 2 * PAUSE),
        ([change(4, 2)], 2 * 40 + 10 * 2 / 8 * 4 * PAUSE),
        ([change(0, 1)], 30 + 10 * 30),
        ([change(1, 2, servingAt=None)], ASSUMED_CHANNEL_SECONDS),
        ([change(1, 2, failure="x")], ASSUMED_CHANNEL_SECONDS),
        ([change(2, 1, rollback=True)], ASSUMED_CHANNEL_SECONDS),
    ],
    ids=[
        "none",
        "wider",
        "joint queries",
        "narrower",
        "woken",
        "under way",
        "failed",
        "rolled back",
    ],
)
def test_the_price_is_that_of_the_regions_own_changes(
    changes: list[dict[str, Any]], expected: float
) -> None:
    assert price(*changes) == pytest.approx(expected)


def part(before: int, after: int, serving: int, **more: Any) -> dict[str, Any]:
    """Return a part of a divided change that serves so many seconds after the whole was wanted."""
    at = f"2026-01-01T00:00:{serving}Z"
    return change(before, after, servingAt=at, finishedAt=at, **more)


def test_a_divided_change_costs_what_all_of_its_channels_waited() -> None:
    """1 → 4 with channels that are warm one after the other, though there from the beginning."""
    parts = [part(1, 2, 35)]
    since = {"since": "2026-01-01T00:00:00Z"}
    parts += [part(2, 3, 42, requestedAt="2026-01-01T00:00:36Z", **since)]
    parts += [part(3, 4, 52, requestedAt="2026-01-01T00:00:43Z", **since)]
    still = 2 / 8 * (2 + 3 + 4)
    assert price(*parts) == pytest.approx(35 + 42 + 52 + 10 * still * PAUSE)
    later = change(4, 5, requestedAt="2026-01-01T00:01:00Z", servingAt="2026-01-01T00:01:10Z")
    assert "in 2 changes" in policy(*parts, later).price.reason


def test_what_follows_a_wake_up_is_a_change_of_its_own() -> None:
    woken = part(0, 1, 35)
    rest = part(1, 2, 45, requestedAt="2026-01-01T00:00:36Z", since="2026-01-01T00:00:00Z")
    assert "in 2 changes" in policy(woken, rest).price.reason


def test_a_number_wins() -> None:
    assert price(change(1, 2), changeCostSeconds=100.0) == pytest.approx(400.0)


def test_auto_is_the_default() -> None:
    settings = Autoscaling.model_validate({"changeCostSeconds": "auto"})
    assert settings == Autoscaling()
    assert settings.change_cost_seconds is None
