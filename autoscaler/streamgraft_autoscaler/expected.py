"""What a region is expected to want soon: what its drivers are made ready by."""

import math
from dataclasses import dataclass

from streamgraft_autoscaler.capacity import RETRY_GROWTH
from streamgraft_autoscaler.demand import Demand
from streamgraft_autoscaler.forecast import BUCKET_SECONDS
from streamgraft_autoscaler.stage import most_width

EXPECTED_SECONDS = 1800.0
"""How far ahead drivers are made ready: long enough to start many of them one after the other."""


@dataclass(frozen=True, slots=True)
class ExpectedDemand:
    """The largest width that a region is expected to want soon, and why."""

    value: float
    """Channels, within the policy's limits."""
    wanted: float
    """Channels wanted now."""
    needed: int
    """Channels that the load needs now."""
    growing: int
    """Channels that it needs in `EXPECTED_SECONDS` if it goes on growing as it does now, as far as
    it may be widened by then."""
    ahead: int
    """Channels that the forecast asks for within `EXPECTED_SECONDS`, as far as it may be widened by
    then; 0 without one."""
    scheduled: int
    """Channels that periods of the week ask for within that time; 0 without one."""


def expected_demand(now: Demand, scheduled: int = 0) -> ExpectedDemand:
    """Return the channels for which drivers should be at hand before the load is there.

    `scheduled`: the least width that is asked for at some time within `EXPECTED_SECONDS`.
    """
    buckets = 1 + math.ceil(EXPECTED_SECONDS / BUCKET_SECONDS)
    ahead = max(
        (width for stage in now.stages.values() for width in stage.ahead[:buckets]), default=0
    )
    growth = now.surroundings.past.growth * EXPECTED_SECONDS / 3600
    growing = math.ceil(now.needed * (1 + growth))
    growing, ahead = (min(width, _most(now)) for width in (growing, ahead))
    value = min(max(now.value, growing, ahead, scheduled), now.policy.max_width)
    return ExpectedDemand(float(value), now.value, now.needed, growing, ahead, scheduled)


def _most(now: Demand) -> int:
    """Return how wide the region may be made within `EXPECTED_SECONDS`: no wider than the next try,
    if its last growth brought next to nothing."""
    capacity, width = now.stages[now.stage].load.capacity, now.surroundings.width
    if capacity is None or (limit := capacity.limit()) is None:
        return now.policy.max_width
    due = limit.retry_in < EXPECTED_SECONDS
    tried = math.ceil(RETRY_GROWTH * capacity.width) if due else 0
    return max(most_width(capacity, now.policy, width), tried)
