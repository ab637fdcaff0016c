"""The demand policy of a region: what its resource asks for, and what its width changes cost."""

from streamgraft_autoscaler import DemandPolicy, NotReady, Reason
from streamgraft_autoscaler.pause import expected_pause
from streamgraft_autoscaler.schedule import Period
from streamgraft_common.adl import Period as AskedPeriod
from streamgraft_metrics_adapter.learning.experience import Known
from streamgraft_metrics_adapter.regions import Region


def policy_of(region: Region, known: Known, state_bytes: float) -> DemandPolicy:
    """Return the policy of a region now; `state_bytes`: state of its largest shard."""
    settings, spec = region.autoscaling, region.spec
    largest = settings.largest_width(spec.max_width)
    scheduled = [item.min_width for item in active_periods(region, known.now) if item.min_width]
    catch_up = min(settings.catch_up_seconds, settings.latency_seconds or settings.catch_up_seconds)
    return DemandPolicy(
        min_width=min(max([settings.min_width, *scheduled]), largest),
        max_width=largest,
        shards=spec.max_width,
        target_utilization=settings.target_utilization,
        headroom=settings.headroom,
        change_cost_seconds=settings.change_cost_seconds,
        catch_up_seconds=catch_up,
        pause=expected_pause(known.pauses, state_bytes),
    )


def blackout(region: Region, now: float) -> NotReady | None:
    """Return why nothing may change now, if the region asks for that."""
    for period in active_periods(region, now):
        if period.min_width is None:
            message = f"no width change from {period.start} to {period.end} {period.time_zone}"
            return NotReady(Reason.BLACKOUT, message)
    return None


def active_periods(region: Region, now: float) -> list[AskedPeriod]:
    """Return the periods of a region that a Unix time is in."""
    return [
        asked
        for asked in region.autoscaling.periods
        if Period(asked.start, asked.end, asked.days, asked.time_zone).contains(now)
    ]
