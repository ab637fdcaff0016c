"""Widths that failed: how long they are avoided, and why."""

from collections.abc import Iterable

from streamgraft_common.backoff import doubled
from streamgraft_common.resources import AvoidedWidth, ParallelRegionStatus, WidthChange
from streamgraft_common.timestamps import from_rfc3339, to_rfc3339
from streamgraft_operator.region.view import RegionView

FIRST_BACKOFF_SECONDS = 60.0
LONGEST_BACKOFF_SECONDS = 3600.0
FORGOTTEN_SECONDS = 3600.0
"""A failure so long after the last back-off ended counts as the first one."""


def avoided(status: ParallelRegionStatus, width: int, now: float) -> AvoidedWidth | None:
    """Return what keeps a width from being tried now, if anything does. Whoever noted it may have
    had another clock: what is avoided for longer than ever is not."""
    entry = _find(status.avoided, width)
    left = from_rfc3339(entry.until) - now if entry else 0.0
    return entry if 0 < left <= LONGEST_BACKOFF_SECONDS else None


def avoid(status: ParallelRegionStatus, width: int, reason: str, now: float) -> AvoidedWidth:
    """Return for how long a width is avoided that failed just now."""
    before = _find(status.avoided, width)
    recent = before and now < from_rfc3339(before.until) + FORGOTTEN_SECONDS
    failures = before.failures + 1 if before and recent else 1
    seconds = doubled(FIRST_BACKOFF_SECONDS, failures - 1, LONGEST_BACKOFF_SECONDS)
    until = to_rfc3339(now + seconds)
    return AvoidedWidth(width=width, failures=failures, until=until, reason=reason)


def without(status: ParallelRegionStatus, width: int) -> list[AvoidedWidth]:
    """Return the avoided widths but for one."""
    return [entry for entry in status.avoided if entry.width != width]


def overdue(view: RegionView, change: WidthChange, seconds: float) -> bool:
    """Return whether the phase that a change is in has lasted so long, but for a savepoint in which
    nothing could move.

    Channels start from when the first of them was made, whatever widths are wanted meanwhile, or
    from the end of the change before: with that some of them were there.
    """
    if change.decided_at or not change.since:
        return has_lasted(view, change.decided_at or change.requested_at, seconds)
    ended = [before.finished_at for before in view.status.changes[:-1] if before.finished_at]
    return has_lasted(view, max((change.since, *ended), key=from_rfc3339), seconds)


def has_lasted(view: RegionView, began: str, seconds: float) -> bool:
    """Return whether it is so long since a time (RFC 3339) that counts as `overdue` does."""
    return view.now - max(from_rfc3339(began), view.parked_until) >= seconds


def _find(entries: Iterable[AvoidedWidth], width: int) -> AvoidedWidth | None:
    return next((entry for entry in entries if entry.width == width), None)
