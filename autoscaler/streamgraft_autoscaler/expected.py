"""What a region is expected to want soon: what its drivers are made ready by."""

import math
from dataclasses import dataclass

from streamgraft_autoscaler.demand import Demand
from streamgraft_autoscaler.forecast import BUCKET_SECONDS

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
    """Channels that it needs in `EXPECTED_SECONDS` if it goes on growing as it does now."""
    ahead: int
    """Channels that the forecast asks for within `EXPECTED_SECONDS`; 0 without one."""
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
    value = min(max(now.value, growing, ahead, scheduled), now.policy.max_width)
    return ExpectedDemand(float(value), now.value, now.needed, growing, ahead, scheduled)
