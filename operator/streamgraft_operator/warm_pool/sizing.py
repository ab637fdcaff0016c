"""How large a warm pool is that has to find its own size. Pure.

It holds the drivers for what the policy expects each region to want within the next half hour
(signal `expected_demand`), or of the largest step that the region has made recently if that is
more, since what grew by three channels this morning is likely to do so again. Of a region in its
first day nobody knows how far its first wave takes it: all that it may grow counts until that is
over. It is at least one channel for each region that may grow, and no more than fit into the memory
that the pool may take.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from streamgraft_common.resources import PoolReason, WidthChange
from streamgraft_common.timestamps import from_rfc3339

LATELY_SECONDS = 86_400.0
"""A step is remembered for a day: loads repeat by the day."""
SAME_STEP_SECONDS = 30.0
"""Growth that goes on so soon after the last change is one step: changes are divided."""
WAVE_SECONDS = 600.0
"""Growth that goes on so soon after the last one is of the same wave: rates are over a minute, so a
load that jumps is seen in part at first, and its first growth is not all of it."""


@dataclass(frozen=True)
class Growth:
    """What a region with an autoscaler may need next."""

    width: int
    """Width that serves; while it changes the drivers of the new one come from the pool."""
    most: int
    """Largest width that its autoscaler may choose."""
    drivers: Sequence[str]
    """What the PEs of a channel must have fixed at their start; "" for one that takes none from a
    pool."""
    changes: Sequence[WidthChange]
    """Its last width changes, oldest first."""
    created: float
    """Since when the region exists, in Unix seconds."""
    expected: int = 0
    """The width that its policy expects to want soon; 0: it does not say."""


def usual_driver(regions: Iterable[Growth]) -> str | None:
    """Return the driver that most PEs of the regions' channels can take; None if none can."""
    counted = Counter(driver for region in regions for driver in region.drivers if driver)
    return max(counted, key=lambda driver: (counted[driver], driver), default=None)


def needed(regions: Iterable[Growth], driver: str, now: float) -> int:
    """Return the number of drivers of one kind that should wait if all memory were theirs."""
    return sum(_drivers(region, driver, now) for region in regions)


def reason(regions: Iterable[Growth], driver: str, now: float) -> PoolReason:
    """Return why that region that needs most of them needs so many."""
    region = max(regions, key=lambda region: _drivers(region, driver, now))
    channels = _channels(region, now)
    if channels == 0:
        return "Widest"
    if driver not in region.drivers:
        return "NoneFits"
    if region.expected - region.width >= channels:
        return "Expected"
    if _largest_step(region.changes, now) >= channels:
        return "LargestStep"
    return "NewRegion" if channels > 1 else "OneChannel"


def _drivers(region: Growth, driver: str, now: float) -> int:
    return region.drivers.count(driver) * _channels(region, now)


def drivers(
    regions: Iterable[Growth], driver: str, now: float, pod_bytes: int, budget_bytes: int
) -> int:
    """Return the number of drivers of one kind that should wait. `now` in Unix seconds."""
    return min(needed(regions, driver, now), budget_bytes // max(pod_bytes, 1))


def _channels(region: Growth, now: float) -> int:
    room, step = region.most - region.width, _largest_step(region.changes, now)
    if now - region.created <= LATELY_SECONDS and not _first_wave_over(region.changes, now):
        step = room
    return max(0, min(max(1, step, region.expected - region.width), room))


def _first_wave_over(changes: Iterable[WidthChange], now: float) -> bool:
    """Return whether a region has grown, and then not for WAVE_SECONDS."""
    ended = now
    for change in filter(_grew, changes):
        if from_rfc3339(change.requested_at) - ended > WAVE_SECONDS:
            break
        ended = from_rfc3339(change.serving_at) if change.serving_at else now
    return now - ended > WAVE_SECONDS


def _grew(change: WidthChange) -> bool:
    return not (change.rollback or change.failure) and change.to_width > change.from_width


def _largest_step(changes: Iterable[WidthChange], now: float) -> int:
    """Return by how many channels a region has grown at a time, at most."""
    largest, begun, ended = 0, 0, 0.0
    for change in changes:
        if not _grew(change):
            ended = 0.0
            continue
        if from_rfc3339(change.requested_at) - ended > SAME_STEP_SECONDS:
            begun = change.from_width
        ended = from_rfc3339(change.serving_at) if change.serving_at else now
        if now - from_rfc3339(change.requested_at) <= LATELY_SECONDS:
            largest = max(largest, change.to_width - begun)
    return largest
