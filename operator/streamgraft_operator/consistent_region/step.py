"""The job control plane of a consistent region (cloud native Streams, section 6.5). Pure.

Running → Draining → Running: when a cut is due its number is written down first, then the Savepoint
of that number is created, which stops the sources, drains the rest, copies all and lets all go on.
So a crash anywhere leads to the same Savepoint. A cut that fails is given up, and its number with
it; the region goes on, and the next cut comes when it is due.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from streamgraft_common.conditions import find
from streamgraft_common.resources import (
    ConsistentRegionSpec,
    ConsistentRegionStatus,
    Cut,
    SavepointStatus,
)
from streamgraft_common.timestamps import from_rfc3339, to_rfc3339
from streamgraft_operator import events
from streamgraft_operator.events import Event
from streamgraft_operator.kit.conditions import READY, State, merged

_AGAIN_SECONDS = 2.0
"""How soon a cut that is due and can't begin is looked at again."""


@dataclass(frozen=True)
class CutView:
    """A cut's Savepoint."""

    number: int
    name: str
    status: SavepointStatus


@dataclass(frozen=True)
class ConsistentRegionView:
    """A region, the Savepoints of its cuts, and the time (Unix seconds)."""

    name: str
    generation: int
    spec: ConsistentRegionSpec
    status: ConsistentRegionStatus
    cuts: Mapping[int, CutView]
    """By number."""
    last_number: int
    """Of a Savepoint of such a name that is there, be it of an earlier job."""
    now: float
    waiting_for: str = ""
    """What has to be before a cut may begin; '' if nothing."""


@dataclass(frozen=True)
class ConsistentRegionDecision:
    """What should be done."""

    status: ConsistentRegionStatus
    """To be written."""
    create: int | None = None
    """Number of the cut whose Savepoint must exist."""
    delete: tuple[str, ...] = ()
    """Savepoints that nobody needs any more."""
    again_seconds: float | None = None
    """When to look again though nothing has changed."""
    events: tuple[Event, ...] = ()
    """To be recorded."""


def step(view: ConsistentRegionView) -> ConsistentRegionDecision:
    """Return what the region comes to now."""
    status, recorded, again = _advance(view)
    if status.state != "Draining" and again is None:
        again = _seconds_to_next(view, status)
    state = _ready(view, status, recorded)
    conditions = merged(view.status.conditions, [state], view.now, view.generation)
    update = {"conditions": conditions, "observed_generation": view.generation}
    drains = status.state == "Draining"
    kept = {cut.number for cut in status.cuts} | ({status.sequence_id} if drains else set())
    return ConsistentRegionDecision(
        status.model_copy(update=update),
        create=status.sequence_id if drains and status.sequence_id not in view.cuts else None,
        delete=tuple(cut.name for number, cut in sorted(view.cuts.items()) if number not in kept),
        again_seconds=again,
        events=recorded,
    )


def _advance(
    view: ConsistentRegionView,
) -> tuple[ConsistentRegionStatus, tuple[Event, ...], float | None]:
    there = [cut for cut in view.status.cuts if cut.number in view.cuts]
    status = view.status.model_copy(update={"cuts": there})
    if status.state == "Draining":
        return *_drained(view, status), None
    if not _is_due(view):
        return status, (), None
    if view.waiting_for:
        return status, (), _AGAIN_SECONDS
    # The Savepoints may know of a number that our status, which is new, does not.
    number = max(status.sequence_id, view.last_number) + 1
    begun = {"state": "Draining", "sequence_id": number, "begun_at": to_rfc3339(view.now)}
    return status.model_copy(update=begun), (), None


def _drained(
    view: ConsistentRegionView, status: ConsistentRegionStatus
) -> tuple[ConsistentRegionStatus, tuple[Event, ...]]:
    """Return what becomes of the cut that is under way."""
    cut = view.cuts.get(status.sequence_id)
    if cut is None or cut.status.phase not in ("Completed", "Failed"):
        return status, ()
    if cut.status.phase == "Failed":
        failed = {"state": _at_rest(status), "failed_cuts": status.failed_cuts + 1}
        event = events.cut_failed(view.name, cut.number, cut.status.message)
        return status.model_copy(update=failed), (event,)
    done = Cut(
        number=cut.number,
        savepoint=cut.name,
        completed_at=cut.status.completed_at or "",
        still_seconds=cut.status.duration_seconds or 0.0,
        size_bytes=cut.status.size_bytes,
    )
    completed = {
        "state": "Running",
        "completed_sequence_id": cut.number,
        "cuts": [*status.cuts, done][-view.spec.retained_cuts :],
        "failed_cuts": 0,
    }
    return status.model_copy(update=completed), ()


def _at_rest(status: ConsistentRegionStatus) -> str:
    return "Running" if status.completed_sequence_id else "Starting"


def _is_due(view: ConsistentRegionView) -> bool:
    left = _seconds_to_next(view, view.status)
    return left is not None and left <= 0


def _seconds_to_next(view: ConsistentRegionView, status: ConsistentRegionStatus) -> float | None:
    """Return when the next cut is due, from now; None if nothing but a request makes it so."""
    if status.begun_at is None or view.spec.requested > status.sequence_id:
        return 0.0
    if view.spec.period_seconds is None:
        return None
    return from_rfc3339(status.begun_at) + view.spec.period_seconds - view.now


def _ready(
    view: ConsistentRegionView, status: ConsistentRegionStatus, recorded: tuple[Event, ...]
) -> State:
    if recorded and status.failed_cuts:
        return State(READY, "False", "CutFailed", recorded[-1].message)
    if status.failed_cuts:  # said already
        old = find(view.status.conditions, READY)
        return State(READY, "False", "CutFailed", old.message if old else "")
    if not status.completed_sequence_id:
        why = view.waiting_for or "the first cut"
        return State(READY, "False", "NoCut", f"there is no cut yet; waiting for {why}")
    return State(READY, "True", "CutCompleted", f"cut {status.completed_sequence_id} is complete")
