"""The demand policy of a region: what its resource asks for, and what its width changes cost."""

from streamgraft_autoscaler import DemandPolicy
from streamgraft_autoscaler.pause import MeasuredPause, expected_pause
from streamgraft_metrics_adapter.regions import Region


def policy_of(region: Region) -> DemandPolicy:
    """Return the policy of a region."""
    settings, spec = region.autoscaling, region.spec
    measured = [
        MeasuredPause(change.pause_seconds_max, 0.0)
        for change in region.status.changes
        if change.pause_seconds_max is not None
    ]
    catch_up = min(settings.catch_up_seconds, settings.latency_seconds or settings.catch_up_seconds)
    return DemandPolicy(
        min_width=settings.smallest_width(spec.max_width),
        max_width=settings.largest_width(spec.max_width),
        shards=spec.max_width,
        target_utilization=settings.target_utilization,
        headroom=settings.headroom,
        catch_up_seconds=catch_up,
        pause=expected_pause(measured, 0.0),
    )
