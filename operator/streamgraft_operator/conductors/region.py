"""The region conductor: one step of a width change, as a pure function of what is there."""

from collections.abc import Mapping
from dataclasses import dataclass

from streamgraft_common.resources import ParallelRegionStatus
from streamgraft_operator.conductors.region_view import PeView, RegionView, ReleaseView, ShardView
from streamgraft_operator.events import Event

__all__ = ["PeView", "RegionDecision", "RegionView", "ReleaseView", "ShardView", "step"]


@dataclass(frozen=True)
class RegionDecision:
    """What should be done now.

    Write `status` first, with the resource version of the view (on a conflict drop the decision and
    step again), then record `events`, then apply the rest. PEs of the channels 0 … channels-1 must
    exist, those of other channels must not. A PE that has to be created starts with what
    `spec_updates` says of it, or no shards.
    """

    channels: int
    spec_updates: Mapping[int, tuple[frozenset[int], int]]
    """PE id → new `spec.shards` and `spec.epoch`."""
    status: ParallelRegionStatus
    events: tuple[Event, ...]


def step(view: RegionView, deadline: float = 300.0) -> RegionDecision:
    """Return what brings the region closer to its wanted width.

    `deadline`: seconds that new channels have to become ready before the change is given up.
    """
    raise NotImplementedError
