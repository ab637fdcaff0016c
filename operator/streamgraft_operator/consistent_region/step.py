"""The job control plane of a consistent region (cloud native Streams, section 6.5). Pure.

Running → Draining → Running: when a cut is due its number is written down first, then the Savepoint
of that number is created, which stops the sources, drains the rest, copies all and lets all go on.
So a crash anywhere leads to the same Savepoint. A cut that fails is given up, and its number with
it; the region goes on, and the next cut comes when it is due.

Running → RollingBack → Running: likewise, to the last cut, when that is asked for, or when a PE of
the region fails and its policy has it go back then. A cut that still drains is deleted first, and
the rollback begins when it is seen to be gone: had it ended meanwhile, what it made final would
come again. A rollback that fails is begun anew until one is complete, for a part of it may be where
it was to go. Failures on the way count for nothing: what failed comes out of the cut like all else.
After some rollbacks in a row without a cut between them no failure leads to another one, since
going back does not help.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from streamgraft_common.conditions import find
from streamgraft_common.resources import (
    ConsistentRegionStatus,
    Cut,
)
from streamgraft_common.timestamps import from_rfc3339, to_rfc3339
from streamgraft_operator import events
from streamgraft_operator.consistent_region.retention import is_whole, last_cuts, superfluous
from streamgraft_operator.consistent_region.view import ConsistentRegionView
from streamgraft_operator.events import Event
from streamgraft_operator.kit.conditions import READY, State, merged

CUTS_SOUND = "CutsSound"
GIVEN_UP = ("Pending", "Draining")
"""Phases in which a cut makes way for a rollback."""
_LARGEST_EXPONENT = 8
_LONGEST_REST_SECONDS = 600.0
"""Behind a cut that failed, where the period is not longer."""
_AGAIN_SECONDS = 2.0
"""How soon a cut that is due and can't begin is looked at again."""
_NOTED_FAILURES = 20
"""That are kept, though there may be many until a rollback can begin."""
_ROLLBACK_AGAIN_SECONDS = 10.0
"""From the begin of a rollback that failed to that of the next one."""


@dataclass(frozen=True)
class ConsistentRegionDecision:
    """What should be done."""

    status: ConsistentRegionStatus
    """To be written."""
    create: int | None = None
    """Number of the cut whose Savepoint must exist."""
    roll_back: int | None = None
    """Number of the rollback whose Savepoint must exist."""
    give_up: str | None = None
    """Savepoint of a cut that a rollback does not wait for: to be deleted in the version that was
    seen, or the cut may have come so far that it ends."""
    delete: tuple[str, ...] = ()
    """Savepoints that nobody needs any more."""
    again_seconds: float | None = None
    """When to look again though nothing has changed."""
    events: tuple[Event, ...] = ()
    """To be recorded."""


def step(view: ConsistentRegionView) -> ConsistentRegionDecision:
    """Return what the region comes to now."""
    status, recorded, again = _advance(view)
    if status.state not in ("Draining", "RollingBack") and again is None:
        again = _seconds_to_next(view, status)
    states = [_ready(view, status, recorded), *_sound(view, status)]
    conditions = merged(view.status.conditions, states, view.now, view.generation)
    update = {"conditions": conditions, "observed_generation": view.generation}
    drains, goes_back = status.state == "Draining", status.state == "RollingBack"
    over = [number for number in view.rollbacks if not goes_back or number != status.rollback_id]
    old = [*superfluous(view, status), *(view.rollbacks[number] for number in sorted(over))]
    missing = goes_back and status.rollback_id not in view.rollbacks
    current = view.cuts.get(status.sequence_id) if drains else None
    # One that was given up, or never came to be, is not made while it would be given up at once.
    creates = drains and current is None and not _may_go_back(view, status)
    return ConsistentRegionDecision(
        status.model_copy(update=update),
        create=status.sequence_id if creates else None,
        roll_back=status.rollback_id if missing else None,
        give_up=current.name if current and _gives_up(view, status) else None,
        delete=tuple(item.name for item in old),
        again_seconds=again,
        events=recorded,
    )


def _advance(
    view: ConsistentRegionView,
) -> tuple[ConsistentRegionStatus, tuple[Event, ...], float | None]:
    there = [cut for cut in view.status.cuts if cut.number in view.cuts]
    status = view.status.model_copy(update={"cuts": there})
    if status.state == "RollingBack":
        return *_rolled_back(view, status), None
    status, recorded = _looked_at(view, status)
    if recorded:
        return status, recorded, _AGAIN_SECONDS
    if _may_go_back(view, status):
        left = _seconds_to_rollback(view, status)
        if left <= 0 and not _gives_up(view, status):
            return *_going_back(view, status), None
        return status, (), max(left, 0.0) or _AGAIN_SECONDS
    if status.state == "Draining":
        return *_drained(view, status), None
    if not _is_due(view):
        return status, (), None
    if view.waiting_for:
        return status, (), _AGAIN_SECONDS
    # The Savepoints may know of a number that our status, which is new, does not.
    number = max(status.sequence_id + 1, view.last_number + 1, view.spec.requested)
    begun = {
        "state": "Draining",
        "sequence_id": number,
        "begun_at": to_rfc3339(view.now),
        "taken_requests": dict(view.requests),
    }
    return status.model_copy(update=begun), (), None


def _drained(
    view: ConsistentRegionView, status: ConsistentRegionStatus
) -> tuple[ConsistentRegionStatus, tuple[Event, ...]]:
    """Return what becomes of the cut that is under way."""
    if status.sequence_id in view.going:
        # Its name is taken as long as it is there, which may be until its repository is back.
        return _failed(view, status, "its Savepoint was deleted")
    if view.taken:
        return _failed(view, status, _taken(view))
    cut = view.cuts.get(status.sequence_id)
    if cut is None or cut.status.phase not in ("Completed", "Failed"):
        return status, ()
    if cut.status.phase == "Failed":
        return _failed(view, status, cut.status.message)
    done = Cut(
        number=cut.number,
        savepoint=cut.name,
        completed_at=cut.status.completed_at or "",
        still_seconds=cut.status.duration_seconds or 0.0,
        size_bytes=cut.status.size_bytes,
        unclean_shards=cut.status.unclean_shards,
    )
    completed = {
        "state": "Running",
        "ended_at": to_rfc3339(view.now),
        "completed_sequence_id": cut.number,
        "cuts": last_cuts([*status.cuts, done], view.spec.retained_cuts),
        "failed_cuts": 0,
        "rollbacks_in_a_row": 0,
    }
    return status.model_copy(update=completed), ()


def _taken(view: ConsistentRegionView) -> str:
    return f"Savepoint {view.taken} is none of its own: delete it"


def _failed(
    view: ConsistentRegionView, status: ConsistentRegionStatus, why: str
) -> tuple[ConsistentRegionStatus, tuple[Event, ...]]:
    """Return the status behind a cut that is given up, and its number with it."""
    failed = {
        "state": _at_rest(status),
        "failed_cuts": status.failed_cuts + 1,
        "ended_at": to_rfc3339(view.now),
    }
    event = events.cut_failed(view.name, status.sequence_id, why)
    return status.model_copy(update=failed), (event,)


def _looked_at(
    view: ConsistentRegionView, status: ConsistentRegionStatus
) -> tuple[ConsistentRegionStatus, tuple[Event, ...]]:
    """Return the status with failures noted: those to go back for, which may be over before that
    can begin, and those that lead to nothing."""
    fresh = _fresh(view, status)
    hopeless = status.rollbacks_in_a_row >= view.spec.max_rollbacks
    if fresh and _target(view, status) and not hopeless:
        # A channel that comes may be given up: then its failures go with it.
        held = sorted(item for item in fresh.items() if item[0] not in view.unheld)
        noted = dict(held[:_NOTED_FAILURES])
        return status.model_copy(update={"pending_failures": noted}), ()
    status = status.model_copy(update={"pending_failures": {}})
    if not fresh and view.let_pass <= set(status.seen_failures):
        return status, ()
    seen = status.model_copy(update={"seen_failures": _seen(view)})
    if not fresh:
        return seen, ()
    why = _told(fresh)
    event = events.no_more_rollbacks(view.name, status.rollbacks_in_a_row, why)
    return seen, (event,) if hopeless else ()


def _seen(view: ConsistentRegionView) -> list[str]:
    """Return all failures of now: each was looked at, under the policy of its time."""
    return sorted({*view.failures, *view.let_pass})


def _fresh(view: ConsistentRegionView, status: ConsistentRegionStatus) -> dict[str, str]:
    """Return what failed and led to nothing yet. What is over counts by policy `failure` alone:
    what is damaged fails again."""
    noted = status.pending_failures if view.spec.roll_back_on == "failure" else {}
    found = {**view.failures, **noted}
    return {name: text for name, text in found.items() if name not in status.seen_failures}


def _told(failures: Mapping[str, str]) -> str:
    return "; ".join(text for _, text in sorted(failures.items()))


def _may_go_back(view: ConsistentRegionView, status: ConsistentRegionStatus) -> bool:
    """Return whether a rollback is wanted, and a cut there; one that is under way is given up,
    unless it has all that it needs."""
    cut = view.cuts.get(status.sequence_id) if status.state == "Draining" else None
    ends_soon = cut is not None and cut.status.phase not in GIVEN_UP
    wanted = _is_wanted(view, status) or bool(_fresh(view, status))
    return wanted and _target(view, status) is not None and not ends_soon


def _is_wanted(view: ConsistentRegionView, status: ConsistentRegionStatus) -> bool:
    """Return whether a rollback was asked for, or begun and is not complete."""
    wanted = max(view.spec.rollback_requested, status.rollback_id)
    return wanted > status.completed_rollback_id


def _target(view: ConsistentRegionView, status: ConsistentRegionStatus) -> str | None:
    """Return the last cut that can be gone back to: a whole one, of the operators and the stages of
    today."""
    operators = frozenset(view.spec.operators)
    fitting = {
        number for number, cut in view.cuts.items() if cut.operators == operators and cut.fits
    }
    whole = (cut for cut in reversed(status.cuts) if is_whole(cut))
    return next((cut.savepoint for cut in whole if cut.number in fitting), None)


def _gives_up(view: ConsistentRegionView, status: ConsistentRegionStatus) -> bool:
    """Return whether a rollback could begin but for a cut under way, which has to go first."""
    there = status.state == "Draining" and status.sequence_id in view.cuts
    return there and _may_go_back(view, status) and _seconds_to_rollback(view, status) <= 0


def _seconds_to_rollback(view: ConsistentRegionView, status: ConsistentRegionStatus) -> float:
    """Return when the next attempt may begin, from now."""
    if view.held_up_by:
        return _AGAIN_SECONDS
    if status.rollback_begun_at is None or status.rollback_id == status.completed_rollback_id:
        return 0.0
    return _past(status.rollback_begun_at, view) + _ROLLBACK_AGAIN_SECONDS - view.now


def _going_back(
    view: ConsistentRegionView, status: ConsistentRegionStatus
) -> tuple[ConsistentRegionStatus, tuple[Event, ...]]:
    by_itself = not _is_wanted(view, status)
    asked = view.spec.rollback_requested > status.completed_rollback_id
    in_a_row = 0 if asked else status.rollbacks_in_a_row
    target = _target(view, status)
    number = max(status.rollback_id, view.last_rollback) + 1
    going = status.model_copy(
        update={
            "state": "RollingBack",
            "rollback_id": max(number, view.spec.rollback_requested),
            "rolls_back_to": target,
            "rollback_begun_at": to_rfc3339(view.now),
            "rollbacks_in_a_row": in_a_row + 1 if by_itself else in_a_row,
            "pending_failures": {},
        }
    )
    why = _told(_fresh(view, status))
    return going, (events.rolls_back(view.name, target or "", why),) if by_itself else ()


def _rolled_back(
    view: ConsistentRegionView, status: ConsistentRegionStatus
) -> tuple[ConsistentRegionStatus, tuple[Event, ...]]:
    """Return what becomes of the rollback that is under way."""
    back = view.rollbacks.get(status.rollback_id)
    rest = status.model_copy(update={"state": _at_rest(status), "seen_failures": _seen(view)})
    if view.taken:
        return rest, (events.rollback_failed(view.name, status.rolls_back_to, _taken(view)),)
    if back is None or back.status.phase not in ("Completed", "Failed"):
        return status, ()
    if back.status.damaged:
        return _to_the_one_before(view, rest, back.status.message)
    if back.status.phase == "Failed":
        message = back.status.message
        return rest, (events.rollback_failed(view.name, status.rolls_back_to, message),)
    done = rest.model_copy(update={"completed_rollback_id": status.rollback_id})
    return done, (events.rolled_back(view.name, status.rolls_back_to),)


def _to_the_one_before(
    view: ConsistentRegionView, status: ConsistentRegionStatus, why: str
) -> tuple[ConsistentRegionStatus, tuple[Event, ...]]:
    """Return the status without the cut that it was to go back to. Nothing has changed yet, so the
    next attempt may begin at once."""
    cuts = [
        cut.model_copy(update={"damaged": why}) if cut.savepoint == status.rolls_back_to else cut
        for cut in status.cuts
    ]
    event = events.cut_damaged(view.name, why)
    return status.model_copy(update={"cuts": cuts, "rollback_begun_at": None}), (event,)


def _at_rest(status: ConsistentRegionStatus) -> str:
    return "Running" if status.completed_sequence_id else "Starting"


def _is_due(view: ConsistentRegionView) -> bool:
    left = _seconds_to_next(view, view.status)
    return left is not None and left <= 0


def _seconds_to_next(view: ConsistentRegionView, status: ConsistentRegionStatus) -> float | None:
    """Return when the next cut is due, from now; None if nothing but a request makes it so."""
    if status.begun_at is None or view.spec.requested > status.sequence_id:
        return 0.0
    begun = _past(status.begun_at, view)
    if any(status.taken_requests.get(pe) != name for pe, name in view.requests.items()):
        # Functions ask again and again, also where cuts can't be.
        return max(_rested(view, status, begun) - view.now, 0.0) if status.failed_cuts else 0.0
    if view.spec.period_seconds is None:
        return None
    return max(begun + view.spec.period_seconds, _rested(view, status, begun)) - view.now


def _rested(view: ConsistentRegionView, status: ConsistentRegionStatus, begun: float) -> float:
    """Return until when the region is to work behind its last cut: as long as that took, and longer
    behind each that failed, lest an outage of what cuts need hold it up as long as it lasts."""
    if status.ended_at is None:
        return begun
    ended = max(_past(status.ended_at, view), begun)
    rest = (ended - begun) * float(2 ** min(status.failed_cuts, _LARGEST_EXPONENT))
    return ended + min(rest, max(_LONGEST_REST_SECONDS, view.spec.period_seconds or 0.0))


def _past(noted: str, view: ConsistentRegionView) -> float:
    """Return a time in the status, which is past: whoever noted it may have had another clock."""
    return min(from_rfc3339(noted), view.now)


def _ready(
    view: ConsistentRegionView, status: ConsistentRegionStatus, recorded: tuple[Event, ...]
) -> State:
    going_back = status.state == "RollingBack" or status.pending_failures
    if going_back or _is_wanted(view, status):
        return _until_rolled_back(view, status)
    there = {name: text for name, text in view.failures.items() if name not in view.over}
    if status.rollbacks_in_a_row >= view.spec.max_rollbacks and there:
        left = _told(there)
        event = events.no_more_rollbacks(view.name, status.rollbacks_in_a_row, left)
        return State(READY, "False", event.reason, event.message)
    if recorded and status.failed_cuts:
        return State(READY, "False", "CutFailed", recorded[-1].message)
    if status.failed_cuts:  # said already
        old = find(view.status.conditions, READY)
        return State(READY, "False", "CutFailed", old.message if old else "")
    if not status.completed_sequence_id:
        why = view.waiting_for or "the first cut"
        return State(READY, "False", "NoCut", f"there is no cut yet; waiting for {why}")
    return State(READY, "True", "CutCompleted", f"cut {status.completed_sequence_id} is complete")


def _sound(view: ConsistentRegionView, status: ConsistentRegionStatus) -> list[State]:
    """Return whether the cuts that are kept are whole, as far as that was looked at."""
    damaged = [cut for cut in status.cuts if cut.damaged]
    if damaged:
        what = (
            "; the region goes back to cuts before it alone. Look at the checkpoint volume and the"
            " repository, and have a cut taken (raise spec.requested)"
        )
        return [State(CUTS_SOUND, "False", "CutDamaged", damaged[-1].damaged + what)]
    if find(view.status.conditions, CUTS_SOUND):
        return [State(CUTS_SOUND, "True", "CutsSound", "no cut that is kept is known as damaged")]
    return []


def _until_rolled_back(view: ConsistentRegionView, status: ConsistentRegionStatus) -> State:
    if status.state == "RollingBack":
        back = view.rollbacks.get(status.rollback_id)
        why = f": {back.status.message}" if back and back.status.message else ""
        return State(READY, "False", "RollingBack", f"going back to {status.rolls_back_to}{why}")
    if _target(view, status) is None:
        why = (
            "there is no cut of these operators to go back to, so it waits for the next one; to"
            " go back further, submit the job from a savepoint"
        )
        return State(READY, "False", "NoCut", why)
    waiting = view.held_up_by or f"cut {status.sequence_id} to end, or for the next attempt"
    return State(READY, "False", "RollingBack", f"waiting for {waiting}")
