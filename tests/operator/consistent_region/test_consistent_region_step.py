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
from streamgraft_operator.consistent_region.step import step
from streamgraft_operator.consistent_region.view import ConsistentRegionView, CutView
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
        rollbacks={},
        last_rollback=0,
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


def test_a_clock_that_was_ahead_puts_off_no_cut_for_longer_than_a_period() -> None:
    """That of the replica that wrote the status, by a day."""
    ahead = draining(1).model_copy(update={"begun_at": to_rfc3339(NOW + 86_400)})
    decision = step(
        view(status=ahead, cuts={1: cut(1, "Completed")}, last_number=1, now=NOW + 86_401)
    )
    now_again = step(view(status=decision.status, cuts={1: cut(1, "Completed")}, last_number=1))
    assert now_again.again_seconds == 10


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


def test_the_last_cut_that_can_be_gone_back_to_is_kept_besides() -> None:
    status = draining(3, 1, 2)
    cuts = {number: cut(number, "Completed") for number in (1, 2, 3)}
    unclean = cuts[3].status.model_copy(update={"unclean_shards": 1})
    cuts[3] = replace(cuts[3], status=unclean)
    spec = WANTED.model_copy(update={"retained_cuts": 1})
    decision = step(view(status=status, cuts=cuts, last_number=3, spec=spec))
    assert [item.number for item in decision.status.cuts] == [2, 3]
    assert decision.delete == ("job-all-cut-1",)


def test_a_cut_whose_savepoint_a_user_deleted_is_forgotten() -> None:
    status = draining(3, 1, 2).model_copy(update={"state": "Running", "sequence_id": 2})
    decision = step(view(status=status, cuts={2: cut(2, "Completed")}, last_number=2))
    assert [item.number for item in decision.status.cuts] == [2]


def test_savepoints_of_an_earlier_job_do_not_count_as_cuts() -> None:
    assert step(view(last_number=7)).create == 8


def test_the_cuts_of_a_region_that_was_made_anew_stay_until_it_has_a_whole_one() -> None:
    """Somebody deleted it, or a backup brought it back without its status."""
    before = {number: cut(number, "Completed") for number in (5, 6, 7)}
    begun = step(view(cuts=before, last_number=7))
    assert (begun.create, begun.delete) == (8, ("job-all-cut-5",))  # it keeps two
    failed = step(view(status=begun.status, cuts={**before, 8: cut(8, "Failed")}, last_number=8))
    assert failed.delete == ("job-all-cut-5", "job-all-cut-8")
    again = step(view(status=failed.status, cuts=before, last_number=8, now=NOW + 60))
    assert (again.create, again.delete) == (9, ("job-all-cut-5",))
    status = again.status.model_copy(update={"begun_at": to_rfc3339(NOW)})
    new = cut(9, "Completed")
    unclean = replace(new, status=new.status.model_copy(update={"unclean_shards": 1}))
    kept = step(view(status=status, cuts={6: before[6], 7: before[7], 9: unclean}, last_number=9))
    assert kept.delete == ()
    done = step(view(status=status, cuts={6: before[6], 7: before[7], 9: new}, last_number=9))
    assert [item.number for item in done.status.cuts] == [9]
    assert done.delete == ("job-all-cut-6", "job-all-cut-7")


def test_a_number_that_was_asked_for_before_is_none_of_an_earlier_cut() -> None:
    """A backup has the request, and no status that says that it is done."""
    spec = ON_DEMAND.model_copy(update={"requested": 7})
    begun = step(view(spec=spec, cuts={7: cut(7, "Completed")}, last_number=7))
    assert (begun.create, begun.delete) == (8, ())
    assert step(view(spec=spec, status=begun.status, last_number=7)).create == 8


def test_without_a_period_a_cut_comes_when_it_is_asked_for() -> None:
    status = draining(2, 1).model_copy(update={"state": "Running"})
    seen = {"status": status, "cuts": {1: cut(1, "Completed")}, "last_number": 2, "now": NOW + 1e6}
    quiet = step(view(spec=ON_DEMAND, **seen))
    assert (quiet.status.state, quiet.again_seconds) == ("Running", None)
    asked = step(view(spec=ON_DEMAND.model_copy(update={"requested": 3}), **seen))
    assert asked.create == 3


def test_a_number_that_is_far_above_the_last_one_is_one_cut_and_one_rollback() -> None:
    """As the time of day: whoever asks need not know the last number."""
    status = draining(2, 1).model_copy(update={"state": "Running"})
    spec = ON_DEMAND.model_copy(update={"requested": 70, "rollback_requested": 90})
    here = {"spec": spec, "last_number": 2, "cuts": {1: cut(1, "Completed")}}
    goes_back = step(view(status=status, **here)).status
    assert goes_back.rollback_id == 90
    ended = replace(back("Completed"), number=90)
    rest = step(view(status=goes_back, rollbacks={90: ended}, **here)).status
    begun = step(view(status=rest, **here))
    assert (begun.create, begun.roll_back) == (70, None)
    cuts = {1: cut(1, "Completed"), 70: cut(70, "Completed")}
    done = step(view(status=begun.status, **{**here, "cuts": cuts})).status
    after = step(view(status=done, **{**here, "cuts": cuts}))
    assert (after.create, after.roll_back, after.again_seconds) == (None, None, None)


def test_a_cut_has_the_time_of_its_region() -> None:
    owner = Owner(namespace="ns", name="job", uid="u1", generation_id=1)
    region = ConsistentRegionSpec(job="job", region="all", drain_timeout_seconds=7.5)
    spec = cut_savepoint(owner, region, 1)["spec"]
    assert (spec["timeoutSeconds"], spec["consistentRegion"]) == (8, "all")


def running(*cuts: int, **more: object) -> ConsistentRegionStatus:
    """Return the status of a region at rest that has cuts."""
    status = draining(max(cuts, default=0), *cuts)
    return status.model_copy(update={"state": "Running" if cuts else "Starting", **more})


WANTED = ON_DEMAND.model_copy(update={"rollback_requested": 1})


def back(phase: str, message: str = "") -> CutView:
    status = SavepointStatus.model_validate({"phase": phase, "message": message})
    return CutView(1, "job-all-rollback-1", status)


def seen(status: ConsistentRegionStatus, **more: object) -> ConsistentRegionView:
    cuts = {item.number: cut(item.number, "Completed") for item in status.cuts}
    return view(**{"spec": WANTED, "status": status, "cuts": cuts, **more})


def test_a_rollback_goes_to_the_last_cut_whose_shards_all_stopped_behind_a_batch() -> None:
    begun = step(seen(running(3, 4)))
    assert (begun.status.state, begun.roll_back) == ("RollingBack", 1)
    assert begun.status.rolls_back_to == "job-all-cut-4"
    assert begun.delete == ()
    again = step(seen(begun.status, rollbacks={1: back("RollingBack")}))
    assert (again.roll_back, again.status.state) == (None, "RollingBack")

    unclean = running(3, 4)
    cuts = [unclean.cuts[0], unclean.cuts[1].model_copy(update={"unclean_shards": 1})]
    older = step(seen(unclean.model_copy(update={"cuts": cuts}))).status
    assert older.rolls_back_to == "job-all-cut-3"


def test_a_cut_of_other_operators_is_none_to_go_back_to() -> None:
    """An edit has added an operator, of which the last cut has no copies."""
    older, newer = (
        replace(cut(number, "Completed"), operators=frozenset(operators))
        for number, operators in ((3, {"work", "more"}), (4, {"work"}))
    )
    edited = WANTED.model_copy(update={"operators": ["work", "more"]})
    begun = step(replace(seen(running(3, 4), cuts={3: older, 4: newer}), spec=edited))
    assert begun.status.rolls_back_to == "job-all-cut-3"
    waits = step(replace(seen(running(4), cuts={4: newer}), spec=edited))
    assert waits.roll_back is None
    state = find(waits.status.conditions, "Ready")
    assert state is not None
    assert (state.reason, "no cut of these operators" in state.message) == ("NoCut", True)


def test_after_a_rollback_it_goes_on_and_its_savepoint_goes() -> None:
    goes_back = step(seen(running(4))).status
    done = step(seen(goes_back, rollbacks={1: back("Completed")}))
    assert (done.status.state, done.status.completed_rollback_id) == ("Running", 1)
    assert [event.reason for event in done.events] == ["RolledBack"]
    assert done.delete == ("job-all-rollback-1",)
    assert step(seen(done.status)).roll_back is None


def test_a_rollback_that_failed_is_begun_anew_after_a_while() -> None:
    goes_back = step(seen(running(4))).status
    failed = step(seen(goes_back, rollbacks={1: back("Failed", "the job changed")}))
    assert [event.reason for event in failed.events] == ["RollbackFailed"]
    waits = step(seen(failed.status))
    assert (waits.status.state, waits.again_seconds) == ("Running", 10.0)
    set_back = step(seen(failed.status, now=NOW - 3600))
    assert set_back.again_seconds == 10.0
    again = step(seen(failed.status, now=NOW + 10))
    assert (again.status.state, again.roll_back) == ("RollingBack", 2)


def test_a_cut_that_is_damaged_makes_way_for_the_one_before() -> None:
    cuts = {number: cut(number, "Completed") for number in (3, 4)}
    goes_back = step(seen(running(3, 4), cuts=cuts)).status
    assert goes_back.rolls_back_to == "job-all-cut-4"
    found = back("Failed", "job-all-cut-4 is damaged: work (a blob is missing)")
    found = replace(found, status=found.status.model_copy(update={"damaged": True}))
    failed = step(seen(goes_back, cuts=cuts, rollbacks={1: found}))
    assert [event.reason for event in failed.events] == ["CutDamaged"]
    again = step(seen(failed.status, cuts=cuts))
    assert (again.status.rolls_back_to, again.roll_back) == ("job-all-cut-3", 2)
    state = find(again.status.conditions, "CutsSound")
    assert state is not None
    assert (state.status, state.reason) == ("False", "CutDamaged")
    assert "a blob is missing" in state.message
    assert "Look at the checkpoint volume and the repository" in state.message
    gone = again.status.model_copy(update={"cuts": again.status.cuts[:1]})
    state = find(step(seen(gone, cuts={3: cuts[3]})).status.conditions, "CutsSound")
    assert state is not None
    assert state.status == "True"


def test_a_rollback_says_what_it_waits_for() -> None:
    def why(status: ConsistentRegionStatus, **more: object) -> tuple[str, str]:
        state = find(step(seen(status, **more)).status.conditions, "Ready")
        assert state
        return state.reason, state.message

    assert why(running())[0] == "NoCut"
    asleep = why(running(4), held_up_by="region r to be woken")
    assert asleep == ("RollingBack", "waiting for region r to be woken")
    goes_back = step(seen(running(4))).status
    found = why(goes_back, rollbacks={1: back("RollingBack", "going back: work")})
    assert found == ("RollingBack", "going back to job-all-cut-4: going back: work")


FAILED = {"pe-1:2": "job-1 had to be launched again (PodFailed)"}
BY_ITSELF = ON_DEMAND.model_copy(update={"roll_back_on": "failure", "max_rollbacks": 2})


def failing(status: ConsistentRegionStatus, **more: object) -> ConsistentRegionView:
    return seen(status, **{"spec": BY_ITSELF, "failures": FAILED, **more})


def test_it_goes_back_by_itself_once_for_a_failure() -> None:
    begun = step(failing(running(3, 4)))
    assert (begun.status.state, begun.roll_back) == ("RollingBack", 1)
    assert begun.status.rolls_back_to == "job-all-cut-4"
    assert [event.message for event in begun.events] == [
        "consistent region all goes back to job-all-cut-4:"
        " job-1 had to be launched again (PodFailed)"
    ]
    # What fails on the way back comes out of the cut as well.
    more = {**FAILED, "pe-2:3": "job-2 had to be launched again (PodDeleted)"}
    done = step(failing(begun.status, rollbacks={1: back("Completed")}, failures=more))
    assert (done.status.state, done.status.rollbacks_in_a_row) == ("Running", 1)
    assert step(failing(done.status, failures=more)).roll_back is None
    assert step(failing(done.status, failures={**more, "pe-2:4": "again"})).roll_back == 2


def test_a_failure_that_is_over_before_it_can_go_back_still_leads_to_a_rollback() -> None:
    """A query starts again within a second; a width change or a cut under way may take minutes."""
    held_up = step(failing(running(3, 4), held_up_by="the width change of region r to end")).status
    assert (held_up.state, held_up.pending_failures) == ("Running", FAILED)
    ready = find(held_up.conditions, "Ready")
    assert ready
    assert (ready.status, ready.reason) == ("False", "RollingBack")
    assert "the width change of region r" in ready.message
    begun = step(failing(held_up, failures={}))
    assert (begun.roll_back, begun.status.pending_failures) == (1, {})
    assert FAILED["pe-1:2"] in begun.events[0].message
    done = step(failing(begun.status, failures={}, rollbacks={1: back("Completed")}))
    assert step(failing(done.status, failures={})).roll_back is None

    cuts = {4: cut(4, "Completed"), 5: cut(5, "Saving")}
    copies = step(failing(draining(5, 4), cuts=cuts)).status
    cuts[5] = cut(5, "Completed")
    complete = step(failing(copies, cuts=cuts, failures={})).status
    assert (complete.completed_sequence_id, complete.pending_failures) == (5, FAILED)
    assert step(failing(complete, cuts=cuts, failures={})).roll_back == 1


def test_what_fails_without_a_shard_is_over_when_it_is_gone() -> None:
    """A channel that comes may be given up; nothing in the region has failed with it."""
    unheld = frozenset(FAILED)
    held_up = step(failing(running(3, 4), held_up_by="a width change", unheld=unheld)).status
    assert held_up.pending_failures == {}
    assert step(failing(held_up, failures={})).roll_back is None
    assert step(failing(held_up, unheld=unheld)).roll_back == 1


def test_a_region_is_well_when_what_it_let_pass_is_over() -> None:
    status = running(3, 4).model_copy(
        update={"rollbacks_in_a_row": 100, "seen_failures": [*FAILED]}
    )
    for over, reason in (
        (frozenset[str](), "NoMoreRollbacks"),
        (frozenset(FAILED), "CutCompleted"),
    ):
        ready = find(step(failing(status, over=over)).status.conditions, "Ready")
        assert ready
        assert ready.reason == reason


def test_a_failure_that_waits_makes_way_for_a_request_and_for_another_policy() -> None:
    held_up = step(failing(running(3, 4), held_up_by="a width change")).status
    asked = BY_ITSELF.model_copy(update={"rollback_requested": 1})
    begun = step(failing(held_up, spec=asked, failures={}))
    assert (begun.status.rollbacks_in_a_row, begun.status.pending_failures) == (0, {})
    never = BY_ITSELF.model_copy(update={"roll_back_on": "never"})
    dropped = step(failing(held_up, spec=never, failures={}))
    assert (dropped.roll_back, dropped.status.pending_failures) == (None, {})
    many = {f"pe-1:{number}": "job-1 failed" for number in range(100)}
    assert len(step(failing(held_up, held_up_by="x", failures=many)).status.pending_failures) == 20


def test_a_rollback_by_itself_that_failed_is_begun_anew_and_counts_once() -> None:
    goes_back = step(failing(running(4))).status
    failed = step(failing(goes_back, rollbacks={1: back("Failed", "the job changed")}))
    ready = find(failed.status.conditions, "Ready")
    assert ready
    assert (ready.status, ready.reason) == ("False", "RollingBack")
    again = step(failing(failed.status, failures={}, now=NOW + 10))
    assert (again.roll_back, again.status.rollbacks_in_a_row) == (2, 1)
    assert again.events == ()


def test_after_some_rollbacks_in_a_row_no_failure_leads_to_another() -> None:
    """Until a cut is complete, or somebody asks for it."""
    many = running(4, rollback_id=2, completed_rollback_id=2, rollbacks_in_a_row=2)
    given_up = step(failing(many))
    assert given_up.roll_back is None
    assert [event.reason for event in given_up.events] == ["NoMoreRollbacks"]
    ready = find(given_up.status.conditions, "Ready")
    assert ready
    assert (ready.status, ready.reason) == ("False", "NoMoreRollbacks")
    assert "raise spec.rollbackRequested" in ready.message
    assert step(failing(given_up.status)).events == ()
    asked = BY_ITSELF.model_copy(update={"rollback_requested": 3})
    goes_back = step(failing(given_up.status, spec=asked))
    assert (goes_back.roll_back, goes_back.status.rollbacks_in_a_row) == (3, 0)


def test_failures_before_the_first_cut_lead_to_nothing() -> None:
    first = step(failing(running(begun_at=to_rfc3339(NOW))))
    assert (first.status.state, first.events) == ("Starting", ())
    assert first.status.seen_failures == ["pe-1:2"]


def test_what_failed_under_another_policy_leads_to_nothing_after_an_edit() -> None:
    """An edit that makes the policy `failure` is no failure, and finds old ones."""
    never = BY_ITSELF.model_copy(update={"roll_back_on": "never"})
    passed = step(failing(running(3, 4), spec=never, failures={}, let_pass=frozenset(FAILED)))
    assert passed.status.seen_failures == ["pe-1:2"]
    assert step(failing(passed.status)).roll_back is None
    assert step(failing(passed.status, failures={"pe-1:3": "again"})).roll_back == 1
    both = step(failing(passed.status, failures={"pe-1:3": "again"}, let_pass=frozenset({"x"})))
    assert both.roll_back == 1


def test_a_cut_that_a_function_asks_for_begins_once() -> None:
    status = running(4)
    asked = seen(status, spec=ON_DEMAND, last_number=4, requests={"job-1": "uid.1"})
    begun = step(asked)
    assert (begun.create, begun.status.taken_requests) == (5, {"job-1": "uid.1"})
    cuts = {4: cut(4, "Completed"), 5: cut(5, "Completed")}
    done = replace(asked, status=begun.status, cuts=cuts, last_number=5)
    after = step(done).status
    assert after.state == "Running"
    assert step(replace(done, status=after)).create is None
    # One that came while the cut was under way leads to another.
    assert step(replace(done, status=after, requests={"job-1": "uid.2"})).create == 6


def test_behind_a_cut_that_took_long_the_region_works_as_long() -> None:
    """Or one cut followed the other, and nothing else was done."""
    status = draining(1).model_copy(update={"begun_at": to_rfc3339(NOW - 25)})
    decision = step(view(status=status, cuts={1: cut(1, "Completed")}, last_number=1))
    assert decision.again_seconds == 25


def test_behind_cuts_that_fail_it_works_longer_and_longer() -> None:
    """So an outage of what cuts need does not hold it up as long as it lasts."""
    rests = []
    for failed in (0, 1, 2, 3):
        status = draining(2, 1).model_copy(
            update={"begun_at": to_rfc3339(NOW - 60), "failed_cuts": failed}
        )
        cuts = {1: cut(1, "Completed"), 2: cut(2, "Failed", "no repository")}
        rests.append(step(view(status=status, cuts=cuts, last_number=2)).again_seconds)
    assert rests == [120, 240, 480, 600]
    asked = PERIODIC.model_copy(update={"requested": 3})
    status = step(view(status=status, cuts=cuts, last_number=2)).status
    again = step(view(spec=asked, status=status, cuts=cuts, last_number=2))
    assert again.create == 3


def test_behind_cuts_that_fail_functions_that_ask_wait_as_well() -> None:
    """A sink that asks for a cut every few batches, while the repository is away."""
    cuts = {1: cut(1, "Completed"), 2: cut(2, "Failed", "no repository")}
    begun = {"begun_at": to_rfc3339(NOW - 60), "taken_requests": {"job-1": "uid.1"}}
    there = {"cuts": cuts, "last_number": 2, "requests": {"job-1": "uid.2"}}
    for spec in (ON_DEMAND, PERIODIC):
        status = draining(2, 1).model_copy(update=begun)
        failed = step(view(spec=spec, status=status, **there))
        assert (failed.status.failed_cuts, failed.again_seconds) == (1, 120)
        seen = view(spec=spec, status=failed.status, **{**there, "cuts": {1: cuts[1]}})
        waits = step(replace(seen, now=NOW + 119))
        assert (waits.create, waits.again_seconds) == (None, 1)
        again = step(replace(seen, now=NOW + 120))
        assert (again.create, again.status.taken_requests) == (3, {"job-1": "uid.2"})
        asked = step(replace(seen, spec=spec.model_copy(update={"requested": 3})))
        assert asked.create == 3


def test_a_cut_of_other_stages_is_none_to_go_back_to() -> None:
    """As of a region that was dropped meanwhile, and came back with topics of its own."""
    status = ConsistentRegionStatus(
        state="Running",
        sequence_id=2,
        completed_sequence_id=2,
        begun_at=to_rfc3339(NOW),
        cuts=[Cut(number=item, savepoint=f"job-all-cut-{item}") for item in (1, 2)],
    )
    spec = PERIODIC.model_copy(update={"rollback_requested": 1})
    cuts = {number: cut(number, "Completed") for number in (1, 2)}
    cuts[2] = replace(cuts[2], fits=False)
    decision = step(view(spec=spec, status=status, cuts=cuts, last_number=2))
    assert decision.status.rolls_back_to == "job-all-cut-1"
