"""The demand policy of a region: what its resource asks for, and what its width changes cost."""

from streamgraft_autoscaler import DemandPolicy
from streamgraft_autoscaler.pause import MeasuredPause, expected_pause
from streamgraft_metrics_adapter.regions import Region

HEADROOM = 0.5


def policy_of(region: Region) -> DemandPolicy:
    """Return the policy of a region."""
    settings, spec = region.autoscaling, region.spec
    measured = [
        MeasuredPause(change.pause_seconds_max, 0.0)
        for change in region.status.changes
        if change.pause_seconds_max is not None
    ]
    limit = min(settings.max_width or spec.max_width, spec.max_width)
    return DemandPolicy(
        min_width=min(settings.min_width, limit),
        max_width=limit,
        shards=spec.max_width,
        target_utilization=settings.target_utilization,
        headroom=HEADROOM,
        catch_up_seconds=settings.catch_up_seconds,
        pause=expected_pause(measured, 0.0),
    )
