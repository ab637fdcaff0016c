"""The savepoint conductor: one step of a savepoint, as a pure function of what is there.

A savepoint is consistent if no record is between two PEs: positions in the job's own topics are
then their ends, and a job with fresh topics can start from it. So stages stop in the order of the
graph: the sources at once, each other stage when all that feed it stand still and it has read all
that they wrote. Then the checkpoints of all shards are copied, and the shards go back to their
owners. A savepoint of one region alone is for a width change of the same job, whose topics stay:
its shards stop at once.

If a pod dies while its stage stops, what its last batch wrote may be there already, and the batch
is not in the checkpoint. A job that starts from a copy would run it again, with a ledger that knows
nothing of it. So that stage gets its shards back, ends the batch, and stops anew, before those
behind it may.

If sinks of a cut commit, they are asked to when all copies are there, before anything goes on. From
then on the cut can't fail: some may have committed. What they do not come to now, the next cut has
them do. So it has for a cut with a batch that was cut off: no rollback goes back to that one.

A rollback stops all stages at once, and notes where the topics between them end. Then PEs look at
what the cut has: if that is damaged, the rollback ends before it has changed anything. Then the
copies take the place of the checkpoints: a part of it would be no state. Both take whatever time
they need: who gave up the look would begin it anew, and what ran meanwhile would be undone.
"""

from typing import Literal

from streamgraft_common.resources import SavedStage, SavepointStatus
from streamgraft_common.resources.savepoint import FORMAT
from streamgraft_common.text import listed
from streamgraft_common.timestamps import from_rfc3339, to_rfc3339
from streamgraft_operator import events
from streamgraft_operator.events import Event
from streamgraft_operator.kit.conditions import State, merged
from streamgraft_operator.savepoint.view import (
    JobFacts,
    SavepointDecision,
    SavepointView,
    StageView,
)

ACTIVE = ("Draining", "Saving", "Committing", "RollingBack")
OVER = ("Completed", "Failed")


def frontier(stages: tuple[StageView, ...], parked: frozenset[str]) -> list[StageView]:
    """Return the stages that may stop once they are drained: all above them stand still."""
    still = {item.stage.name for item in stages if item.stopped and item.stage.name in parked}
    return [item for item in stages if item.stage.name not in parked and item.upstream <= still]


def step(view: SavepointView) -> SavepointDecision:
    """Return the status that the savepoint comes to now."""
    if view.status.phase in OVER:
        return SavepointDecision(view.status)
    status, recorded = _advance(view)
    done = status.phase == "Completed"
    state = State("Complete", "True" if done else "False", status.phase, status.message)
    conditions = merged(view.status.conditions, [state], view.now, view.generation)
    update = {"conditions": conditions, "observed_generation": view.generation}
    return SavepointDecision(status.model_copy(update=update), recorded)


def _advance(view: SavepointView) -> tuple[SavepointStatus, tuple[Event, ...]]:
    status = view.status
    if status.phase == "Committing":
        return _committed(view)
    if status.phase == "RollingBack":
        return _rolled_back(view)
    if status.phase == "Pending" and view.problem:
        return _failed(view, view.problem)
    if status.phase in ACTIVE and (lost := _lost(view)):
        return _failed(view, lost)
    if damaged := [item for item in view.stages if item.damaged]:
        return _damaged(view, damaged)
    waiting = _waiting_for(view)
    if view.now - view.created >= view.spec.timeout_seconds and not _looks(view):
        why = f"not complete within {view.spec.timeout_seconds} s: {waiting}"
        return _failed(view, why)
    if view.problem:  # nothing is known of the stages
        return _with_message(status, waiting), ()
    if status.phase == "Pending":
        if view.waiting_for or view.facts is None:
            return _with_message(status, f"waiting for {waiting}"), ()
        return _begun(view, view.facts), ()
    if status.phase == "Draining":
        return _drained(view, waiting), ()
    if waiting:
        return _with_message(status, waiting), ()
    if view.spec.rolls_back_to:
        message = f"going back to {view.spec.rolls_back_to}"
        return status.model_copy(update={"phase": "RollingBack", "message": message}), ()
    copied = _copied(view, "Completed")
    if any(item.commits for item in view.stages):
        if not copied.unclean_shards:
            return _copied(view, "Committing"), ()
        copied = _with_message(copied, _not_whole(copied.unclean_shards))
    return _completed(copied, view)


def _looks(view: SavepointView) -> bool:
    """Return whether all stand still for a rollback, and PEs look at what the cut has."""
    going_back = view.spec.rolls_back_to is not None
    return going_back and view.status.phase == "Saving" and not view.problem


def _lost(view: SavepointView) -> str:
    """Return why a savepoint that has begun can't become complete; '' if it can."""
    if view.facts and view.facts.created > view.created:
        return f"job {view.spec.job} was deleted while it was saved, and submitted anew"
    # Of a part of the job the stages may be as they were, with a new one between them.
    edited = view.facts and view.facts.bundle_digest != view.status.bundle_digest
    begun = [_planned(item) for item in view.status.stages]
    other = view.stages and [_planned(item.stage) for item in view.stages] != begun
    # What a rollback puts in the place of checkpoints is the same for other code of the stages.
    matters = view.spec.consistent_region is not None and view.status.phase != "RollingBack"
    if other or (edited and matters):
        return f"the application of job {view.spec.job} changed while it was saved"
    return view.abandoned


def _planned(stage: SavedStage) -> SavedStage:
    # Values that change in place leave a stage what it is: the edit was judged by its state. So it
    # was by what sinks do at cuts, which the operator that began may be too old to have noted.
    return stage.with_state(None).model_copy(update={"plans": None, "commits": []})


def _begun(view: SavepointView, facts: JobFacts) -> SavepointStatus:
    # What is between the stages of a rollback is let go of, so none has to wait for another.
    first_ones = view.stages if view.spec.rolls_back_to else frontier(view.stages, frozenset())
    first = [item.stage.name for item in first_ones]
    return view.status.model_copy(
        update={
            "phase": "Draining",
            "format": FORMAT,
            "parked": first,
            "stages": [item.stage for item in view.stages],
            "started_at": to_rfc3339(view.now),
            "message": f"stopping {listed(first)}",
            "job_spec": dict(facts.job_spec),
            "generation_id": facts.generation_id,
            "content_id": facts.content_id,
            "bundle_digest": facts.bundle_digest,
            "widths": dict(facts.widths),
            "repository": facts.repository,
        }
    )


def _drained(view: SavepointView, waiting: str) -> SavepointStatus:
    """Stop whatever has read all that is to come; when all stand still, ask for the copies."""
    status = view.status
    cut_off = _cut_off(view)
    # Parked first: what no PE runs at the moment may be given to one before others know of it.
    still = len(status.parked) == len(view.stages) and all(item.stopped for item in view.stages)
    if still and not cut_off:
        if view.spec.rolls_back_to:
            return _stands_still(view)
        update = {"phase": "Saving", "drained_at": to_rfc3339(view.now), "message": "copying"}
        return status.model_copy(update=update)
    parked = [name for name in status.parked if name not in cut_off]
    next_ones = frontier(view.stages, frozenset(parked))
    parked += [item.stage.name for item in next_ones if item.drained and item.running]
    return status.model_copy(update={"parked": parked, "message": waiting})


def _cut_off(view: SavepointView) -> frozenset[str]:
    """Return the stages that have to run once more, to end a batch that was cut off.

    Not once a stage behind one has stopped, which would not read what it writes: it had ended all
    by then. Who goes on in the same job, or goes back, has nothing written twice.
    """
    if view.spec.region or view.spec.rolls_back_to:
        return frozenset()
    parked = view.status.parked
    done = frozenset().union(*(item.upstream for item in view.stages if item.stage.name in parked))
    return frozenset(
        item.stage.name
        for item in view.stages
        if item.stage.name in parked and item.stopped and not item.clean
    ).difference(done)


def _stands_still(view: SavepointView) -> SavepointStatus:
    if view.ends is None:
        return _with_message(view.status, "asking Kafka where the topics between stages end")
    update = {
        "phase": "Saving",
        "drained_at": to_rfc3339(view.now),
        "ends": dict(view.ends),
        "message": f"looking at {view.spec.rolls_back_to}",
    }
    return view.status.model_copy(update=update)


def _rolled_back(view: SavepointView) -> tuple[SavepointStatus, tuple[Event, ...]]:
    """Return whether all is back; nothing but the end of what is rolled back ends it before."""
    if not view.problem and (lost := _lost(view)):
        return _failed(view, f"a part of it is at {view.spec.rolls_back_to}: {lost}")
    if waiting := _waiting_for(view):
        return _with_message(view.status, waiting), ()
    return _completed(_copied(view, "Completed"), view)


def _damaged(
    view: SavepointView, stages: list[StageView]
) -> tuple[SavepointStatus, tuple[Event, ...]]:
    """Return the end of a rollback, or of a savepoint, that can't be."""
    if view.spec.rolls_back_to is None:
        return _failed(view, f"not copied: {_with_reasons(stages)}")
    why = f"{view.spec.rolls_back_to} is damaged: {_with_reasons(stages)}"
    failed, recorded = _failed(view, why)
    return failed.model_copy(update={"damaged": True}), recorded


def _copied(view: SavepointView, phase: Literal["Committing", "Completed"]) -> SavepointStatus:
    """Return the status with what the copies are."""
    update = {
        "phase": phase,
        "stages": [item.stage.with_state(item.state, item.size_bytes) for item in view.stages],
        "shards": sum(item.stage.shards for item in view.stages),
        "size_bytes": sum(item.size_bytes for item in view.stages),
        "unclean_shards": sum(item.unclean for item in view.stages),
        "save_seconds": round(view.now - _drained_at(view), 3),
        "message": "committing" if phase == "Committing" else "",
    }
    return view.status.model_copy(update=update)


def _not_whole(shards: int) -> str:
    """Return why a cut is not committed that can't be gone back to: what it made final would come
    again after a rollback to the cut before."""
    return (
        f"not committed: {shards} shards ended in the midst of a batch, which runs again; the next"
        " cut commits what is in this one"
    )


def _committed(view: SavepointView) -> tuple[SavepointStatus, tuple[Event, ...]]:
    """Return whether all sinks have committed, or time is over, or the job is another one now."""
    waiting = _waiting_for(view)
    late = view.now - view.created >= view.spec.timeout_seconds
    if waiting and not late and not _lost(view):
        return _with_message(view.status, waiting), ()
    return _completed(_with_message(view.status, f"not done: {waiting}" if waiting else ""), view)


def _completed(
    status: SavepointStatus, view: SavepointView
) -> tuple[SavepointStatus, tuple[Event, ...]]:
    began = from_rfc3339(status.started_at) if status.started_at else _drained_at(view)
    update = {
        "phase": "Completed",
        "parked": [],
        "duration_seconds": round(view.now - began, 3),
        "completed_at": to_rfc3339(view.now),
    }
    done = status.model_copy(update=update)
    if view.spec.rolls_back_to:
        return done, ()
    completed = events.savepoint_completed(
        view.name, done.shards, done.size_bytes, done.unclean_shards
    )
    return done, (completed,)


def _drained_at(view: SavepointView) -> float:
    return from_rfc3339(view.status.drained_at) if view.status.drained_at else view.now


def _failed(view: SavepointView, why: str) -> tuple[SavepointStatus, tuple[Event, ...]]:
    over = to_rfc3339(view.now)
    update = {"phase": "Failed", "parked": [], "message": why, "completed_at": over}
    return view.status.model_copy(update=update), (events.savepoint_failed(view.name, why),)


def _waiting_for(view: SavepointView) -> str:
    """Return what keeps the savepoint in its phase; '' if nothing does."""
    if view.problem:
        return view.problem
    match view.status.phase:
        case "Pending":
            return view.waiting_for
        case "Draining":
            parked = frozenset(view.status.parked)
            stopping = [
                item.stage.name
                for item in view.stages
                if item.stage.name in parked and not item.stopped
            ]
            goes_on = [item for item in view.stages if item.stage.name not in parked]
            reading = [item.stage.name for item in goes_on if item.running]
            waits = [item.stage.name for item in goes_on if not item.running]
            return "; ".join(
                f"{what} {listed(names)}"
                for what, names in (
                    ("stopping", stopping),
                    ("waiting for all shards to run:", waits),
                    ("reading to the end:", reading),
                )
                if names
            )
        case "Committing":
            left = [item for item in view.stages if item.commits and not item.committed]
            return f"committing {_with_reasons(left)}" if left else ""
        case _:
            back = view.status.phase == "RollingBack"
            left = [
                item
                for item in view.stages
                if len(item.saved) < item.stage.shards or (back and not item.committed)
            ]
            looking = "copying" if view.spec.rolls_back_to is None else "looking at the copies of"
            what = "going back:" if back else looking
            return f"{what} {_with_reasons(left)}" if left else ""


def _with_reasons(stages: list[StageView]) -> str:
    reasons = [f"{item.stage.name} ({item.message})" for item in stages if item.message]
    return listed(reasons or [item.stage.name for item in stages])


def _with_message(status: SavepointStatus, message: str) -> SavepointStatus:
    return status.model_copy(update={"message": message})
