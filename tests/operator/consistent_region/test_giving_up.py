"""A cut that is under way makes way for a rollback."""

from dataclasses import replace

import pytest

from streamgraft_common.resources import (
    ConsistentRegionSpec,
    ConsistentRegionStatus,
    Cut,
    SavepointStatus,
)
from streamgraft_common.timestamps import to_rfc3339
from streamgraft_operator.consistent_region.step import ConsistentRegionDecision, step
from streamgraft_operator.consistent_region.view import ConsistentRegionView, CutView

NOW = 1_700_000_000.0
WANTED = ConsistentRegionSpec(
    job="job", region="all", trigger="operatorDriven", rollback_requested=1
)
NOT_WANTED = WANTED.model_copy(update={"rollback_requested": 0})
DRAINING = ConsistentRegionStatus(
    state="Draining",
    sequence_id=5,
    completed_sequence_id=4,
    begun_at=to_rfc3339(NOW - 1),
    cuts=[Cut(number=4, savepoint="job-all-cut-4")],
)


def cut(number: int, phase: str) -> CutView:
    status = SavepointStatus.model_validate({"phase": phase})
    return CutView(number, f"job-all-cut-{number}", status)


def view(phase: str | None) -> ConsistentRegionView:
    """Return a region that is to go back; `phase`: of its cut under way, None if that is gone."""
    return ConsistentRegionView(
        name="all",
        generation=1,
        spec=WANTED,
        status=DRAINING,
        cuts={4: cut(4, "Completed")} | ({5: cut(5, phase)} if phase else {}),
        last_number=5,
        rollbacks={},
        last_rollback=0,
        now=NOW,
    )


def does(decision: ConsistentRegionDecision) -> tuple[object, ...]:
    """Return what is made and deleted."""
    return decision.create, decision.roll_back, decision.give_up, decision.delete


NOTHING = (None, None, None, ())


@pytest.mark.parametrize("phase", ["Pending", "Draining"])
def test_one_that_drains_is_deleted_before_the_rollback_begins(phase: str) -> None:
    decision = step(view(phase))
    assert does(decision) == (None, None, "job-all-cut-5", ())
    assert decision.status.state == "Draining"
    assert decision.again_seconds


@pytest.mark.parametrize("phase", ["Saving", "Committing"])
def test_one_that_has_all_ends_first(phase: str) -> None:
    """What its sinks make final would come again behind a rollback to the cut before."""
    assert does(step(view(phase))) == NOTHING
    completed = step(view("Completed")).status
    assert (completed.state, completed.completed_sequence_id) == ("Running", 5)


@pytest.mark.parametrize("going", [frozenset({5}), frozenset()], ids=["is being deleted", "gone"])
def test_the_rollback_begins_once_it_is_gone(going: frozenset[int]) -> None:
    decision = step(replace(view(None), going=going))
    assert does(decision) == (None, 1, None, ())
    assert (decision.status.state, decision.status.rolls_back_to) == (
        "RollingBack",
        "job-all-cut-4",
    )


@pytest.mark.parametrize("going", [frozenset({5}), frozenset()], ids=["is being deleted", "gone"])
def test_it_is_not_made_anew_while_something_holds_the_rollback_up(going: frozenset[int]) -> None:
    """A width change may begin as soon as nothing is cut."""
    held_up = replace(view(None), going=going, held_up_by="the width change of region r to end")
    decision = step(held_up)
    assert does(decision) == NOTHING
    assert decision.status.state == "Draining"
    assert step(replace(held_up, held_up_by="", status=decision.status)).roll_back == 1


def test_it_stays_while_something_holds_the_rollback_up() -> None:
    assert does(step(replace(view("Draining"), held_up_by="a width change"))) == NOTHING


def test_its_number_is_given_up_with_it_if_nobody_wants_to_go_back_any_more() -> None:
    """Its name is taken until its files are removed, which may take as long as an outage."""
    deleted = replace(view(None), spec=NOT_WANTED, going=frozenset({5}))
    decision = step(deleted)
    assert does(decision) == NOTHING
    assert (decision.status.state, decision.status.failed_cuts) == ("Running", 1)
    assert [event.reason for event in decision.events] == ["CutFailed"]
    asked = NOT_WANTED.model_copy(update={"requested": 6})
    assert step(replace(deleted, spec=asked, status=decision.status)).create == 6
