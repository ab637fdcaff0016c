"""The demand policy of a region: what its resource asks for, and what its width changes cost."""

from streamgraft_autoscaler import DemandPolicy, NotReadyError, Reason
from streamgraft_autoscaler.expected import EXPECTED_SECONDS
from streamgraft_autoscaler.pause import expected_pause
from streamgraft_autoscaler.pricing import ChangePrice, MeasuredChange, measured_price
from streamgraft_autoscaler.schedule import Period
from streamgraft_common.adl import Period as AskedPeriod
from streamgraft_common.resources import WidthChange
from streamgraft_common.timestamps import from_rfc3339
from streamgraft_metrics_adapter.learning.knowledge import Known
from streamgraft_metrics_adapter.regions import Region

LOOK_SECONDS = 60
"""Periods begin and end at full minutes."""


def policy_of(region: Region, known: Known, state_bytes: float) -> DemandPolicy:
    """Return the policy of a region now; `state_bytes`: state of its largest shard."""
    settings, spec = region.autoscaling, region.spec
    largest = settings.largest_width(spec.max_width)
    catch_up = min(settings.catch_up_seconds, settings.latency_seconds or settings.catch_up_seconds)
    pause = expected_pause(known.pauses, state_bytes)
    return DemandPolicy(
        min_width=min(max(settings.min_width, scheduled_width(region, known.now)), largest),
        max_width=largest,
        shards=spec.max_width,
        target_utilization=settings.target_utilization,
        headroom=settings.headroom,
        price=_price(region, pause.seconds),
        catch_up_seconds=catch_up,
        pause=pause,
    )


def _price(region: Region, pause_seconds: float) -> ChangePrice:
    """Return what a width change must save: as asked for, or as the region's own changes cost."""
    if (asked := region.autoscaling.change_cost_seconds) is not None:
        return ChangePrice.given(asked)
    return measured_price(_measured_changes(region), pause_seconds)


def _measured_changes(region: Region) -> list[MeasuredChange]:
    """Return what the region's changes took, oldest first; one that was divided counts once."""
    found: list[MeasuredChange] = []
    before: WidthChange | None = None
    for change in region.status.changes:
        measured = _measured(change, region.spec.max_width)
        if measured is None:
            before = None
            continue
        if before and _goes_on(change, before):
            found[-1] = found[-1].followed_by(measured)
        else:
            found.append(measured)
        before = change
    return found


def _goes_on(change: WidthChange, before: WidthChange) -> bool:
    """Return whether a change brings channels that had been made when the one before served.

    After a sleep it is a change of its own: records waited for the first channel only.
    """
    if not change.since or not before.serving_at or before.from_width == 0:
        return False
    return from_rfc3339(change.since) < from_rfc3339(before.serving_at)


def _measured(change: WidthChange, shards: int) -> MeasuredChange | None:
    """Return what a change took; None if it is not over, or was given up."""
    channels = change.to_width - change.from_width
    ended = change.serving_at if channels > 0 else change.finished_at
    if change.failure or change.rollback or not channels or not ended:
        return None
    idle_seconds = max(from_rfc3339(ended) - from_rfc3339(change.began_at), 0.0)
    # An operator that knew the latter not yet may have noted the change.
    still = max(len(change.moved_shards), change.affected_shards)
    still_channels = still / shards * max(change.from_width, change.to_width)
    woke = change.from_width == 0
    return MeasuredChange(abs(channels), idle_seconds, still_channels, woke)


def refuse_blackout(region: Region, now: float) -> None:
    """Raise NotReadyError if the region asks that nothing changes now."""
    for period in active_periods(region, now):
        if period.min_width is None:
            message = f"no width change from {period.start} to {period.end} {period.time_zone}"
            raise NotReadyError(Reason.BLACKOUT, message)


def scheduled_soon(region: Region, now: float) -> int:
    """Return the least width that the region's periods ask for at some time soon; 0 for none."""
    moments = range(0, int(EXPECTED_SECONDS) + 1, LOOK_SECONDS)
    return max(scheduled_width(region, now + ahead) for ahead in moments)


def scheduled_width(region: Region, now: float) -> int:
    """Return the least width that the region's periods ask for at a Unix time; 0 for none."""
    return max((item.min_width or 0 for item in active_periods(region, now)), default=0)


def active_periods(region: Region, now: float) -> list[AskedPeriod]:
    """Return the periods of a region that a Unix time is in."""
    return [
        asked
        for asked in region.autoscaling.periods
        if Period(asked.start, asked.end, asked.days, asked.time_zone).contains(now)
    ]
