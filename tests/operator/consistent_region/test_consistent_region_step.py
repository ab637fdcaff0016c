"""The job control plane of a consistent region, step by step."""

from dataclasses import replace

from streamgraft_common.conditions import find
from streamgraft_common.resources import (
    ConsistentRegionSpec,
    ConsistentRegionStatus,
    Cut,
    SavepointStatus,
)
from streamgraft_common.timestamps import to_rfc3339
from streamgraft_operator.consistent_region.step import (
    ConsistentRegionView,
    CutView,
    step,
)
from streamgraft_operator.manifests import cut_savepoint
from streamgraft_operator.manifests.metadata import Owner

NOW = 1_700_000_000.0
PERIODIC = ConsistentRegionSpec(job="job", region="all", period_seconds=10, retained_cuts=2)
ON_DEMAND = ConsistentRegionSpec(job="job", region="all", trigger="operatorDriven")


def view(**more: object) -> ConsistentRegionView:
    base = ConsistentRegionView(
        name="all",
        generation=1,
        spec=PERIODIC,
        status=ConsistentRegionStatus(),
        cuts={},
        last_number=0,
        now=NOW,
    )
    return replace(base, **more)  # type: ignore[arg-type]


def cut(number: int, phase: str, message: str = "") -> CutView:
    status = SavepointStatus.model_validate({"phase": phase, "message": message})
    return CutView(number, f"job-all-cut-{number}", status)


def draining(number: int, *kept: int) -> ConsistentRegionStatus:
    """Return the status of a region whose cut is under way, and which has others."""
    return ConsistentRegionStatus(
        state="Draining",
        sequence_id=number,
        completed_sequence_id=max(kept, default=0),
        begun_at=to_rfc3339(NOW - 1),
        cuts=[Cut(number=item, savepoint=f"job-all-cut-{item}") for item in kept],
    )


def test_the_first_cut_begins_at_once_and_its_number_is_written_before_it_is_created() -> None:
    decision = step(view())
    assert (decision.status.state, decision.status.sequence_id) == ("Draining", 1)
    assert decision.create == 1


def test_a_crash_between_status_and_creation_leads_to_the_same_cut() -> None:
    decision = step(view(status=draining(1), now=NOW + 100))
    assert (decision.status.sequence_id, decision.create) == (1, 1)


def test_nothing_begins_while_the_job_is_not_healthy() -> None:
    decision = step(view(waiting_for="job job to be Healthy"))
    assert (decision.status.state, decision.create) == ("Starting", None)
    assert decision.again_seconds
    ready = find(decision.status.conditions, "Ready")
    assert ready
    assert "job job to be Healthy" in ready.message


def test_a_complete_cut_is_recorded_and_the_region_runs_until_its_period_is_over() -> None:
    decision = step(view(status=draining(1), cuts={1: cut(1, "Completed")}, last_number=1))
    status = decision.status
    assert (status.state, status.completed_sequence_id) == ("Running", 1)
    assert [item.savepoint for item in status.cuts] == ["job-all-cut-1"]
    assert decision.again_seconds == 9
    later = step(view(status=status, cuts={1: cut(1, "Completed")}, last_number=1, now=NOW + 9))
    assert (later.status.state, later.create) == ("Draining", 2)


def test_a_cut_that_fails_is_given_up_with_its_number_and_the_one_before_stays() -> None:
    cuts = {1: cut(1, "Completed"), 2: cut(2, "Failed", "not complete within 60 s")}
    decision = step(view(status=draining(2, 1), cuts=cuts, last_number=2))
    status = decision.status
    assert (status.state, status.completed_sequence_id, status.failed_cuts) == ("Running", 1, 1)
    assert decision.delete == ("job-all-cut-2",)
    assert decision.events[0].reason == "CutFailed"
    ready = find(status.conditions, "Ready")
    assert ready
    assert (ready.status, ready.reason) == ("False", "CutFailed")
    following = step(view(status=status, cuts={1: cuts[1]}, last_number=2, now=NOW + 60))
    assert following.create == 3


def test_only_the_last_cuts_are_kept() -> None:
    cuts = {number: cut(number, "Completed") for number in (1, 2, 3)}
    decision = step(view(status=draining(3, 1, 2), cuts=cuts, last_number=3))
    assert [item.number for item in decision.status.cuts] == [2, 3]
    assert decision.delete == ("job-all-cut-1",)


def test_a_cut_whose_savepoint_a_user_deleted_is_forgotten() -> None:
    status = draining(3, 1, 2).model_copy(update={"state": "Running", "sequence_id": 2})
    decision = step(view(status=status, cuts={2: cut(2, "Completed")}, last_number=2))
    assert [item.number for item in decision.status.cuts] == [2]


def test_savepoints_of_an_earlier_job_do_not_count_as_cuts() -> None:
    assert step(view(last_number=7)).create == 8


def test_without_a_period_a_cut_comes_when_it_is_asked_for() -> None:
    status = draining(2, 1).model_copy(update={"state": "Running"})
    seen = {"status": status, "cuts": {1: cut(1, "Completed")}, "last_number": 2, "now": NOW + 1e6}
    quiet = step(view(spec=ON_DEMAND, **seen))
    assert (quiet.status.state, quiet.again_seconds) == ("Running", None)
    asked = step(view(spec=ON_DEMAND.model_copy(update={"requested": 3}), **seen))
    assert asked.create == 3


def test_a_cut_has_the_time_of_its_region() -> None:
    owner = Owner(namespace="ns", name="job", uid="u1", generation_id=1)
    region = ConsistentRegionSpec(job="job", region="all", drain_timeout_seconds=7.5)
    spec = cut_savepoint(owner, region, 1)["spec"]
    assert (spec["timeoutSeconds"], spec["consistentRegion"]) == (8, "all")
