"""The savepoint conductor, step by step."""

from dataclasses import replace

import pytest

from streamgraft_common.conditions import find
from streamgraft_common.resources import (
    CheckpointRepository,
    SavedPlan,
    SavedStage,
    SavepointSpec,
    SavepointStatus,
)
from streamgraft_common.timestamps import to_rfc3339
from streamgraft_operator.savepoint.step import step
from streamgraft_operator.savepoint.view import (
    JobFacts,
    SavepointDecision,
    SavepointView,
    StageView,
)

NOW = 1_700_000_000.0
REPOSITORY = CheckpointRepository.model_validate({"s3": {"bucket": "copies"}})
FACTS = JobFacts({"bundle": {}}, 3, "content", "digest", {"work": 2}, REPOSITORY)


def stage(name: str, shards: int, *upstream: str) -> StageView:
    saved = SavedStage(name=name, shards=shards, operators=[name])
    return StageView(saved, frozenset(upstream), stopped=False)


READ, WORK, WRITE = stage("read", 1), stage("work", 2, "read"), stage("write", 1, "work")


def view(
    *stages: StageView, status: SavepointStatus | None = None, **more: object
) -> SavepointView:
    base = SavepointView(
        name="s",
        generation=1,
        spec=SavepointSpec(job="job"),
        status=status or SavepointStatus(),
        created=NOW,
        stages=stages or (READ, WORK, WRITE),
        facts=FACTS,
        now=NOW,
    )
    return replace(base, **more)  # type: ignore[arg-type]


def stopped(item: StageView) -> StageView:
    return replace(item, stopped=True, clean=True)


def drained(item: StageView) -> StageView:
    return replace(item, drained=True, running=True)


def parked(*names: str, phase: str = "Draining") -> SavepointStatus:
    begun = step(view()).status
    return begun.model_copy(update={"parked": list(names), "phase": phase})


def test_sources_stop_first() -> None:
    status = step(view()).status
    assert (status.phase, status.parked) == ("Draining", ["read"])
    assert [item.name for item in status.stages] == ["read", "work", "write"]
    assert (status.generation_id, status.content_id, status.widths) == (3, "content", {"work": 2})
    assert status.repository == REPOSITORY


def test_a_stage_stops_when_what_feeds_it_stands_still_and_it_has_read_it_all() -> None:
    status = parked("read")
    assert step(view(READ, drained(WORK), WRITE, status=status)).status.parked == ["read"]
    assert step(view(stopped(READ), WORK, WRITE, status=status)).status.parked == ["read"]
    next_one = step(view(stopped(READ), drained(WORK), drained(WRITE), status=status)).status
    assert next_one.parked == ["read", "work"]


def test_copies_are_asked_for_when_all_stand_still() -> None:
    every = ("read", "work", "write")
    running = step(view(stopped(READ), stopped(WORK), WRITE, status=parked(*every))).status
    assert (running.phase, running.message) == ("Draining", "stopping write")
    still = step(view(*map(stopped, (READ, WORK, WRITE)), status=parked(*every))).status
    assert (still.phase, still.parked) == ("Saving", list(every))


def test_what_happens_to_stand_still_is_stopped_before_it_is_copied() -> None:
    """Otherwise a PE that is created at that moment may be given its shards."""
    still = drained(stopped(WRITE))
    status = step(view(stopped(READ), stopped(WORK), still, status=parked("read", "work"))).status
    assert (status.phase, status.parked) == ("Draining", ["read", "work", "write"])


def cut_off(item: StageView) -> StageView:
    return replace(item, stopped=True)


def test_a_stage_whose_batch_was_cut_off_ends_it_before_those_behind_it_stop() -> None:
    dead = step(view(cut_off(READ), drained(WORK), WRITE, status=parked("read"))).status
    assert (dead.phase, dead.parked) == ("Draining", [])
    starting = step(view(replace(READ, drained=True), drained(WORK), WRITE, status=dead)).status
    assert (starting.phase, starting.parked) == ("Draining", [])
    assert starting.message.startswith("waiting for all shards to run: read")
    again = step(view(drained(READ), drained(WORK), WRITE, status=starting)).status
    assert again.parked == ["read"]
    assert step(view(stopped(READ), drained(WORK), WRITE, status=again)).status.parked == [
        "read",
        "work",
    ]


def test_the_last_stage_ends_its_batch_before_anything_is_copied() -> None:
    every = ("read", "work", "write")
    status = step(view(*map(stopped, (READ, WORK)), cut_off(WRITE), status=parked(*every))).status
    assert (status.phase, status.parked) == ("Draining", ["read", "work"])


def test_a_stage_that_others_have_read_to_the_end_runs_no_more() -> None:
    """It stood still between two batches then; a new resource of its PE knows nothing of it."""
    status = parked("read", "work")
    seen = step(view(cut_off(READ), WORK, WRITE, status=status)).status
    assert (seen.phase, seen.parked) == ("Draining", ["read", "work"])


@pytest.mark.parametrize(
    "spec", [SavepointSpec(job="job", region="r"), SavepointSpec(job="job", rolls_back_to="cut")]
)
def test_who_goes_on_in_the_same_job_has_no_batch_ended(spec: SavepointSpec) -> None:
    every = ("read", "work", "write")
    stages = (READ, WORK, WRITE)
    seen = view(*map(cut_off, stages), status=parked(*every), spec=spec, ends={"topic": [1]})
    assert step(seen).status.phase == "Saving"


def saved(item: StageView, *shards: int) -> StageView:
    return replace(item, stopped=True, saved=frozenset(shards), size_bytes=10 * len(shards))


def saving(work: StageView, write: StageView | None = None, **more: object) -> SavepointDecision:
    status = parked("read", "work", "write", phase="Saving")
    write = write or saved(WRITE, 0)
    return step(view(saved(READ, 0), work, write, status=status, **more))


def test_complete_with_the_last_copy() -> None:
    waiting = saving(saved(WORK, 0)).status
    assert (waiting.phase, waiting.message) == ("Saving", "copying work")
    failing = saving(replace(saved(WORK, 0), message="the disk is full")).status
    assert failing.message == "copying work (the disk is full)"
    done = saving(saved(WORK, 0, 1))
    assert (done.status.phase, done.status.parked) == ("Completed", [])
    assert (done.status.shards, done.status.size_bytes) == (4, 40)
    assert [item.size_bytes for item in done.status.stages] == [10, 20, 10]
    condition = find(done.status.conditions, "Complete")
    assert condition
    assert condition.status == "True"
    assert [event.reason for event in done.events] == ["SavepointCompleted"]


def test_shards_whose_batch_was_cut_off_are_counted() -> None:
    done = saving(replace(saved(WORK, 0, 1), unclean=1))
    assert done.status.unclean_shards == 1
    assert "1 of them in the midst of a batch" in done.events[0].message


@pytest.mark.parametrize("phase", ["Draining", "Saving"])
def test_it_fails_at_once_if_nobody_is_left_to_copy(phase: str) -> None:
    failed = step(view(abandoned="region work fell asleep", status=parked("read", phase=phase)))
    assert (failed.status.phase, failed.status.parked) == ("Failed", [])
    assert failed.status.message == "region work fell asleep"
    assert failed.status.completed_at == to_rfc3339(NOW)


def test_it_waits_for_regions_that_sleep_before_it_begins() -> None:
    seen = view(abandoned="region work fell asleep", waiting_for="region work to be woken")
    assert step(seen).status.phase == "Pending"


def test_time_runs_out_and_the_job_goes_on() -> None:
    failed = saving(saved(WORK, 0), now=NOW + 300)
    assert (failed.status.phase, failed.status.parked) == ("Failed", [])
    assert failed.status.message == "not complete within 300 s: copying work"
    assert [event.reason for event in failed.events] == ["SavepointFailed"]


@pytest.mark.parametrize(
    ("seen", "phase", "message"),
    [
        (view(problem="job job is Failed"), "Failed", "job job is Failed"),
        (view(waiting_for="savepoint r to end"), "Pending", "waiting for savepoint r to end"),
    ],
)
def test_nothing_stops_before_all_is_well(seen: SavepointView, phase: str, message: str) -> None:
    status = step(seen).status
    assert (status.phase, status.parked, status.message) == (phase, [], message)


def test_one_that_is_over_stays_as_it_is() -> None:
    over = parked(phase="Failed")
    assert step(view(status=over, problem="no job")).status == over


@pytest.mark.parametrize("names", [(), ("read", "work", "write")])
@pytest.mark.parametrize("phase", ["Draining", "Saving"])
def test_one_that_has_begun_waits_for_its_job(phase: str, names: tuple[str, ...]) -> None:
    status = parked(*names, phase=phase)
    waiting = step(replace(view(status=status, problem="no bundle"), stages=())).status
    assert (waiting.phase, waiting.message) == (phase, "no bundle")


def test_an_application_that_changes_meanwhile_fails_it() -> None:
    status = step(view(READ, stage("work.0", 2, "read"), WRITE, status=parked("read"))).status
    assert (status.phase, status.parked) == ("Failed", [])
    assert "application of job job changed" in status.message


def test_values_that_change_meanwhile_are_in_it_with_the_copies() -> None:
    """An edit of them that is made in place has left all state as it is."""
    plan = SavedPlan(code="c", parameters={"least": "2"}, built_with={"least": "2"})
    work = saved(WORK, 0, 1)
    other = replace(work, stage=work.stage.model_copy(update={"plans": {"work": plan}}))
    status = saving(other).status
    assert status.phase == "Completed", status.message
    assert status.stages[1].plans == {"work": plan}


def test_an_upgrade_of_the_operator_meanwhile_does_not_fail_it() -> None:
    """Earlier releases did not note which sinks commit; what the copies are of has it."""
    sink = replace(SINK, stage=SINK.stage.model_copy(update={"commits": ["files"]}))
    assert committing(sink).status.phase == "Committing"
    done = committing(replace(sink, committed=True)).status
    assert done.phase == "Completed", done.message
    assert done.stages[2].commits == ["files"]
    assert not done.stages[1].commits


def test_a_job_submitted_anew_meanwhile_fails_it() -> None:
    anew = replace(FACTS, created=NOW + 1)
    status = step(view(facts=anew, status=parked("read"))).status
    assert (status.phase, status.parked) == ("Failed", [])
    assert "deleted while it was saved" in status.message


@pytest.mark.parametrize(
    ("region", "phase"), [(None, "Draining"), ("c", "Failed")], ids=["job", "consistent region"]
)
def test_a_cut_fails_if_another_bundle_comes_meanwhile(region: str | None, phase: str) -> None:
    """A stage may be new between two that are as they were: nobody waits for it."""
    edited = replace(FACTS, bundle_digest="another")
    spec = SavepointSpec(job="job", consistent_region=region)
    status = step(view(status=parked("read"), facts=edited, spec=spec)).status
    assert status.phase == phase


def committing(write: StageView, **more: object) -> SavepointDecision:
    status = saving(saved(WORK, 0, 1), write=write).status
    assert (status.phase, status.parked) == ("Committing", ["read", "work", "write"])
    return step(view(saved(READ, 0), saved(WORK, 0, 1), write, status=status, **more))


SINK = replace(saved(WRITE, 0), commits=True)


def test_sinks_commit_when_all_is_copied_and_nothing_runs_before() -> None:
    waiting = committing(SINK).status
    assert (waiting.phase, waiting.message) == ("Committing", "committing write")
    failing = committing(replace(SINK, message="files can't commit")).status
    assert failing.message == "committing write (files can't commit)"
    done = committing(replace(SINK, committed=True)).status
    assert (done.phase, done.parked, done.message) == ("Completed", [], "")
    assert (done.shards, done.size_bytes) == (4, 40)


def test_a_cut_that_nobody_can_go_back_to_is_not_committed() -> None:
    """A rollback to the cut before would make the same final again."""
    done = saving(replace(saved(WORK, 0, 1), unclean=1), write=SINK)
    assert (done.status.phase, done.status.parked) == ("Completed", [])
    assert done.status.message.startswith("not committed: 1 shards ended in the midst of a batch")


@pytest.mark.parametrize(
    "more",
    [
        {"now": NOW + 300},
        {"abandoned": "region work fell asleep"},
        {"facts": replace(FACTS, created=NOW + 1)},
    ],
)
def test_a_cut_that_a_sink_may_have_committed_never_fails(more: dict[str, object]) -> None:
    """What the others have not committed the next cut does."""
    done = committing(replace(SINK, message="the service is away"), **more).status
    assert (done.phase, done.parked, done.shards) == ("Completed", [], 4)
    assert done.message == "not done: committing write (the service is away)"


BACK = SavepointSpec(job="job", consistent_region="all", operators=["read"], rolls_back_to="cut")
EVERY = ("read", "work", "write")
STILL = tuple(map(stopped, (READ, WORK, WRITE)))


def rolling_back(*stages: StageView, **more: object) -> SavepointDecision:
    status = parked(*EVERY).model_copy(update={"phase": "RollingBack", "ends": {"t": [3]}})
    return step(view(*stages, status=status, **{"spec": BACK, **more}))


def test_a_rollback_stops_all_at_once_and_notes_where_topics_end() -> None:
    begun = step(view(spec=BACK)).status
    assert begun.parked == list(EVERY)
    running = step(view(stopped(READ), stopped(WORK), WRITE, spec=BACK, status=begun, ends={}))
    assert running.status.phase == "Draining"
    away = step(view(*STILL, spec=BACK, status=begun)).status
    assert (away.phase, away.message[:12]) == ("Draining", "asking Kafka")
    still = step(view(*STILL, spec=BACK, status=begun, ends={"t": [3, 4]})).status
    assert (still.phase, still.ends, still.parked) == ("Saving", {"t": [3, 4]}, list(EVERY))
    looked = [saved(READ, 0), saved(WORK, 0), saved(WRITE, 0)]
    looking = step(view(*looked, spec=BACK, status=still)).status
    assert (looking.phase, looking.message) == ("Saving", "looking at the copies of work")
    looked[1] = saved(WORK, 0, 1)
    back = step(view(*looked, spec=BACK, status=looking)).status
    assert (back.phase, back.ends, back.parked) == ("RollingBack", {"t": [3, 4]}, list(EVERY))


def test_other_code_ends_a_cut_and_no_rollback_that_puts_checkpoints_back() -> None:
    other = replace(FACTS, bundle_digest="another")
    stages = [replace(saved(item, 0), committed=item is not WORK) for item in (READ, WORK, WRITE)]
    assert rolling_back(*stages, facts=other).status.phase == "RollingBack"
    status = parked(*EVERY, phase="Saving")
    cut = SavepointSpec(job="job", consistent_region="all", operators=["read"])
    assert step(view(*stages, spec=cut, status=status, facts=other)).status.phase == "Failed"


def test_a_rollback_to_what_is_damaged_ends_before_it_has_changed_anything() -> None:
    status = parked(*EVERY).model_copy(update={"phase": "Saving"})
    harmed = replace(stopped(WORK), message="a blob is missing", damaged=True)
    failed = step(view(saved(READ, 0), harmed, stopped(WRITE), spec=BACK, status=status)).status
    assert (failed.phase, failed.damaged, failed.parked) == ("Failed", True, [])
    assert failed.message == "cut is damaged: work (a blob is missing)"


def test_a_savepoint_whose_place_is_taken_fails_at_once() -> None:
    """Sources stand still, and trying again does not help."""
    taken = replace(stopped(WORK), message="first has the copies of another", damaged=True)
    status = parked(*EVERY, phase="Saving")
    failed = step(view(saved(READ, 0), taken, stopped(WRITE), status=status)).status
    assert (failed.phase, failed.damaged, failed.parked) == ("Failed", False, [])
    assert failed.message == "not copied: work (first has the copies of another)"


def test_a_rollback_looks_at_copies_for_as_long_as_it_takes_to_read_them() -> None:
    """Who looks anew reads them anew; and what runs meanwhile is undone."""
    late = {"spec": BACK, "now": NOW + 9999, "ends": {"t": [3]}}
    looking = parked(*EVERY, phase="Saving")
    reads = step(view(saved(READ, 0), saved(WORK, 0), stopped(WRITE), status=looking, **late))
    assert (reads.status.phase, reads.status.parked) == ("Saving", list(EVERY))
    gone = step(view(*STILL, status=looking, abandoned="savepoint cut was deleted", **late))
    assert (gone.status.phase, gone.status.message) == ("Failed", "savepoint cut was deleted")
    unknown = step(view(*STILL, status=looking, problem="the bundle is gone", **late))
    assert unknown.status.phase == "Failed"
    stopping = step(view(READ, *STILL[1:], status=parked(*EVERY), **late)).status
    assert (stopping.phase, stopping.message) == (
        "Failed",
        "not complete within 300 s: stopping read",
    )


def test_a_rollback_that_has_begun_takes_whatever_time_it_needs() -> None:
    there = [replace(saved(item, 0), committed=True) for item in (READ, WORK, WRITE)]
    late = rolling_back(*there, now=NOW + 9999).status
    assert (late.phase, late.message) == ("RollingBack", "going back: work")
    there[1] = saved(WORK, 0, 1)  # as it was looked at
    assert rolling_back(*there).status.message == "going back: work"
    away = rolling_back(problem="the bundle is gone").status
    assert (away.phase, away.message) == ("RollingBack", "the bundle is gone")
    done = rolling_back(there[0], replace(saved(WORK, 0, 1), committed=True), there[2])
    assert (done.status.phase, done.status.parked, done.events) == ("Completed", [], ())


def test_a_rollback_ends_when_its_cut_is_gone() -> None:
    failed = rolling_back(*STILL, abandoned="savepoint cut was deleted").status
    assert (failed.phase, failed.parked) == ("Failed", [])
    assert failed.message == "a part of it is at cut: savepoint cut was deleted"
