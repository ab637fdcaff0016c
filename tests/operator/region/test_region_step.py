"""The region conductor, step by step."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from streamgraft_common.conditions import find
from streamgraft_common.resources import ParallelRegionStatus, SavepointStatus, WidthChange
from streamgraft_common.timestamps import to_rfc3339
from streamgraft_operator.pe.view import PeView, ReleaseView, ShardView
from streamgraft_operator.region.rollback import avoid, avoided
from streamgraft_operator.region.shards import SpecUpdate
from streamgraft_operator.region.step import RegionDecision, step
from streamgraft_operator.region.view import RegionView

NOW = 1_700_000_000.0


def running(pe_id: int, shards: set[int], epoch: int = 1, first: float = NOW) -> PeView:
    held = {shard: ShardView("Running", epoch, first, first) for shard in shards}
    return PeView(
        pe_id,
        pe_id,
        0,
        exists=True,
        spec_shards=frozenset(shards),
        spec_epoch=epoch,
        held=held,
        ready=True,
        applied_epoch=epoch,
        pod_alive=True,
        launch_count=1,
    )


def region(width: int, status: ParallelRegionStatus, *pes: PeView, now: float = NOW) -> RegionView:
    return RegionView("job", "r", 1, width, 4, 1, 0, status, pes, now)


STEADY = step(
    region(
        1,
        ParallelRegionStatus(width=1, epoch=1, assignment=dict.fromkeys("0123", 0)),
        running(0, {0, 1, 2, 3}),
    )
).status


def condition(decision: RegionDecision, kind: str) -> tuple[str, str]:
    found = find(decision.status.conditions, kind)
    assert found
    return found.status, found.reason


def test_initial_assignment_is_in_the_specs_before_any_pod() -> None:
    decision = step(region(2, ParallelRegionStatus()))
    assert decision.channels == 2
    assert decision.spec_updates == {0: (frozenset({0, 1}), 1), 1: (frozenset({2, 3}), 1)}
    assert decision.status.width == 2
    assert condition(decision, "Ready") == ("False", "ShardsNotRunning")


def test_surge_waits_for_warm_channels() -> None:
    owner = running(0, {0, 1, 2, 3})
    begun = step(region(2, STEADY, owner))
    assert (begun.channels, begun.status.epoch) == (2, 1)
    assert begun.spec_updates == {1: (frozenset(), 1)}
    assert condition(begun, "Resizing") == ("True", "WarmingUp")
    decided = step(region(2, begun.status, owner, running(1, set())))
    assert decided.status.epoch == 2
    assert decided.spec_updates == {0: (frozenset({0, 1, 3}), 2)}
    assert decided.status.width == 1


def test_channels_that_are_warm_do_not_wait_for_the_last() -> None:
    """One change to 4 becomes one to 2 and one to 4; nobody is deleted in between."""
    owner = running(0, {0, 1, 2, 3})
    begun = step(region(4, STEADY, owner)).status
    pes = owner, running(1, set()), replace(running(2, set()), ready=False)
    patient = step(region(4, begun, *pes, now=NOW + 3))
    assert patient.status.changes[-1].to_width == 4
    assert patient.events == ()
    divided = step(region(4, begun, *pes, now=NOW + 4))
    assert divided.channels == 4
    assert [event.reason for event in divided.events] == ["WidthChangeDivided", "ShardsMoving"]
    (change,) = divided.status.changes
    assert (change.to_width, set(divided.status.assignment.values())) == (2, {0, 1})
    arrived = running(0, {0, 1}, 2), running(1, {2, 3}, 2), pes[2]
    status = divided.status
    reasons = []
    for _ in range(3):
        later = step(region(4, status, *arrived, now=NOW + 6))
        assert later.channels == 4
        reasons += [event.reason for event in later.events]
        status = later.status
    assert reasons == ["WidthServing", "WidthChangeFinished", "WidthChangeStarted"]
    assert (status.changes[-1].from_width, status.changes[-1].to_width) == (2, 4)


def test_a_change_says_since_when_its_channels_are_there() -> None:
    """That goes on from a divided one: its deadline counts from that one's end."""
    owner = running(0, {0, 1, 2, 3})
    begun = step(region(4, STEADY, owner)).status
    assert begun.changes[-1].since is None
    cold = replace(running(2, set()), ready=False, created_at=NOW + 1)
    made = replace(running(1, set()), created_at=NOW + 1)
    status = step(region(4, begun, owner, made, cold, now=NOW + 250)).status
    arrived = running(0, {0, 1}, 2), running(1, {2, 3}, 2), cold
    for _ in range(3):
        status = step(region(4, status, *arrived, now=NOW + 260)).status
    assert status.changes[-1].since == to_rfc3339(NOW + 1)
    assert step(region(4, status, *arrived, now=NOW + 550)).status.changes[-1].failure is None
    assert step(region(4, status, *arrived, now=NOW + 560)).status.changes[-1].failure


def test_another_wanted_width_gives_cold_channels_no_more_time() -> None:
    owner = running(0, {0, 1, 2, 3})
    cold = replace(running(1, set()), ready=False, created_at=NOW)
    begun = step(region(2, STEADY, owner)).status
    other = step(region(3, begun, owner, cold, now=NOW + 200)).status
    (change,) = other.changes
    assert (change.to_width, change.since) == (3, to_rfc3339(NOW))
    assert step(region(3, other, owner, cold, now=NOW + 299)).status.changes[-1].failure is None
    assert step(region(3, other, owner, cold, now=NOW + 300)).status.changes[-1].failure


def test_channels_that_were_to_go_count_from_then_on() -> None:
    """They served for hours before."""
    pes = [replace(running(i, {i}, 2), created_at=NOW - 9999) for i in range(4)]
    wide = STEADY.model_copy(
        update={"width": 4, "epoch": 2, "assignment": {str(i): i for i in range(4)}, "changes": []}
    )
    status = step(region(2, wide, *pes)).status
    pes = [
        replace(running(i, shards, 3), created_at=NOW - 9999)
        for i, shards in enumerate([{0, 2}, {1, 3}, set[int](), set[int]()])
    ]
    for _ in range(2):
        status = step(region(4, status, *pes, now=NOW + 5)).status
    assert status.changes[-1].finished_at
    status = step(region(4, status, *pes, now=NOW + 6)).status
    assert (status.changes[-1].to_width, status.changes[-1].since) == (4, to_rfc3339(NOW + 5))


def test_a_divided_change_that_fails_is_not_tried_again_at_once() -> None:
    """It would be divided again, and fail again: both widths are avoided."""
    owner = running(0, {0, 1, 2, 3})
    begun = step(region(4, STEADY, owner)).status
    cold = replace(running(2, set()), ready=False)
    divided = step(region(4, begun, owner, running(1, set()), cold, now=NOW + 4)).status
    ill = ShardView("Failed", 2, NOW, None, "ValueError: not here")
    sick = replace(running(1, {2, 3}, epoch=2), held={2: ill, 3: ill})
    pes = replace(running(0, {0, 1}, epoch=2)), sick, cold
    back = step(region(4, divided, *pes, now=NOW + 305)).status
    assert [entry.width for entry in back.avoided] == [2, 4]
    home = running(0, {0, 1, 2, 3}, epoch=3)
    status = back
    for _ in range(4):
        status = step(region(4, status, home, now=NOW + 310)).status
    assert (status.width, status.changes[-1].rollback) == (1, True)
    assert step(region(4, status, home, now=NOW + 366)).status.changes[-1].to_width == 4


def test_channels_behind_a_cold_one_wait() -> None:
    begun = step(region(3, STEADY, running(0, {0, 1, 2, 3}))).status
    late = region(3, begun, running(0, {0, 1, 2, 3}), running(2, set()), now=NOW + 9)
    assert step(late).status.epoch == 1


@pytest.mark.parametrize(
    ("starts", "warm", "channels"), [(1, 0, 2), (2, 0, 3), (1, 1, 3), (1, 2, 4), (9, 0, 4)]
)
def test_only_so_many_drivers_start_at_a_time(starts: int, warm: int, channels: int) -> None:
    owner = running(0, {0, 1, 2, 3})
    begun = step(region(4, STEADY, owner)).status
    pes = [owner, *(running(channel, set()) for channel in range(1, 1 + warm))]
    assert step(replace(region(4, begun, *pes), starts=starts)).channels == channels


def test_drivers_that_start_are_not_stopped_when_fewer_may() -> None:
    begun = step(region(4, STEADY, running(0, {0, 1, 2, 3}))).status
    pes = [replace(running(channel, set()), ready=False) for channel in (1, 2, 3)]
    view = region(4, begun, running(0, {0, 1, 2, 3}), *pes)
    assert step(replace(view, starts=1)).channels == 4


def test_a_channel_that_fails_keeps_no_new_one_from_starting() -> None:
    owner = replace(running(0, {0, 1, 2, 3}), ready=False, pod_alive=False)
    assert step(replace(region(4, STEADY, owner), starts=1)).channels == 2


def handing_over() -> ParallelRegionStatus:
    """Width 1 to 2, epoch 2: shards 2 and 3 move to channel 1."""
    change = WidthChange(
        from_width=1, to_width=2, epoch=2, requested_at=to_rfc3339(NOW), moved_shards=[2, 3]
    )
    assignment = {"0": 0, "1": 0, "2": 1, "3": 1}
    return STEADY.model_copy(update={"epoch": 2, "assignment": assignment, "changes": [change]})


OLD = replace(running(0, {0, 1}, epoch=2), applied_epoch=1)
NEW = replace(running(1, set(), epoch=2), applied_epoch=1)
HELD = ShardView("Stopping", 1, NOW, NOW)


@pytest.mark.parametrize(
    ("old", "granted"),
    [
        (replace(OLD, spec_shards=frozenset({0, 1, 2, 3})), set()),
        (replace(OLD, held={2: HELD, 3: HELD}), set()),
        (OLD, set()),
        (replace(OLD, applied_epoch=2), {2, 3}),
        (replace(OLD, releases={2: ReleaseView(2, NOW, NOW, clean=True)}), {2}),
        (replace(OLD, releases={2: ReleaseView(1, NOW, NOW, clean=True)}), set()),
        (replace(OLD, releases={2: ReleaseView(2, NOW, NOW, clean=True)}, ready=False), set()),
        (replace(OLD, pod_alive=False, held={}), {2, 3}),
        (PeView(0, 0, 0, exists=False, pod_alive=True), set()),
    ],
    ids=[
        "in spec",
        "held",
        "unconfirmed",
        "applied",
        "released",
        "released before",
        "released by the pod before",
        "pod gone",
        "PE deleted, pod alive",
    ],
)
def test_a_shard_is_granted_when_nobody_can_have_it(old: PeView, granted: set[int]) -> None:
    decision = step(region(2, handing_over(), old, NEW))
    shards, _ = decision.spec_updates.get(1, (frozenset(), 2))
    assert shards == granted


def test_the_word_of_an_old_owner_needs_no_look_for_unseen_pods() -> None:
    """Who asks for nothing, or has only to take what was released, loses no time by it."""
    releases = {shard: ReleaseView(2, NOW, NOW, clean=True) for shard in (2, 3)}
    assert not step(region(2, handing_over(), OLD, NEW)).on_absence
    assert not step(region(2, handing_over(), replace(OLD, releases=releases), NEW)).on_absence
    without_pod = replace(OLD, pod_alive=False, held={})
    for others in ((), (without_pod,), (replace(OLD, applied_epoch=2),)):
        assert step(region(2, handing_over(), *others, NEW)).on_absence


def test_a_deleted_pe_keeps_its_shards_while_its_pod_runs() -> None:
    """Also if the region was deleted too, so that nobody knows any more whose they were."""
    assigned = STEADY.model_copy(update={"epoch": 2, "assignment": dict.fromkeys("0123", 0)})
    keeper = running(0, {0, 1}, epoch=1)
    deleted = PeView(1, 1, 0, exists=False, pod_alive=True, orphaned=True)
    assert step(region(1, assigned, keeper, deleted)).spec_updates == {}
    anew = replace(deleted, exists=True)
    assert not step(region(2, assigned, keeper, anew)).spec_updates.get(0)
    gone = step(region(1, assigned, keeper))
    assert gone.spec_updates == {0: (frozenset({0, 1, 2, 3}), 2)}


def test_shards_move_one_after_another() -> None:
    before = replace(running(0, {0, 1, 2, 3}, epoch=1))
    first = step(region(2, handing_over(), before, NEW))
    assert first.spec_updates == {0: (frozenset({0, 1, 3}), 2)}
    without = replace(running(0, {0, 1, 3}, epoch=2), held={2: HELD})
    assert step(region(2, handing_over(), without, NEW)).spec_updates == {}
    released = replace(without, releases={2: ReleaseView(2, NOW, NOW, clean=True)}, held={})
    granted = step(region(2, handing_over(), released, NEW))
    assert granted.spec_updates == {1: (frozenset({2}), 2)}
    starting = replace(running(1, {2}, epoch=2), held={2: ShardView("Starting", 2, NOW, None)})
    assert step(region(2, handing_over(), released, starting)).spec_updates == {}
    arrived = step(region(2, handing_over(), released, running(1, {2}, epoch=2)))
    assert arrived.spec_updates == {0: (frozenset({0, 1}), 2)}


def test_shards_of_one_query_move_at_once() -> None:
    """Both queries stop and start once, and a shard that is stuck keeps the others for seconds."""
    decided = handing_over()
    change = decided.changes[0].model_copy(update={"decided_at": to_rfc3339(NOW)})
    decided = decided.model_copy(update={"changes": [change]})

    def at(seconds: float, *pes: PeView) -> Mapping[int, SpecUpdate]:
        view = replace(region(2, decided, *pes, now=NOW + seconds), joint=frozenset({0}))
        return step(view).spec_updates

    assert at(0, running(0, {0, 1, 2, 3}), NEW) == {0: (frozenset({0, 1}), 2)}
    released = {shard: ReleaseView(2, NOW, NOW, clean=True) for shard in (2, 3)}
    stuck = replace(OLD, releases={2: released[2]}, held={3: HELD})
    assert at(1, stuck, NEW) == {}
    assert at(1, replace(OLD, releases=released), NEW) == {1: (frozenset({2, 3}), 2)}
    assert at(5, stuck, NEW) == {1: (frozenset({2}), 2)}


def test_serving_then_finished_with_the_pause() -> None:
    releases = {
        2: ReleaseView(2, NOW + 1, NOW + 0.5, clean=True),
        3: ReleaseView(2, NOW + 1, NOW + 0.9, clean=False),
    }
    old = replace(running(0, {0, 1}, epoch=2), releases=releases)
    new = running(1, {2, 3}, epoch=2, first=NOW + 2)
    serving = step(region(2, handing_over(), old, new, now=NOW + 3))
    (change,) = serving.status.changes
    assert change.pause_seconds_max == 1.5
    assert change.unclean_releases == 1
    assert serving.status.width == 2
    finished = step(region(2, serving.status, old, new, now=NOW + 4))
    assert finished.status.changes[0].finished_at == to_rfc3339(NOW + 4)
    assert condition(finished, "Resizing") == ("False", "Settled")


def test_scale_down_keeps_a_channel_until_it_is_empty() -> None:
    before = STEADY.model_copy(update={"width": 2, "assignment": {"0": 0, "1": 0, "2": 1, "3": 1}})
    decided = step(region(1, before, running(0, {0, 1}), running(1, {2, 3})))
    assert decided.status.epoch == 2
    assert decided.spec_updates == {1: (frozenset({3}), 2)}
    held = replace(running(1, set(), epoch=2), held={3: HELD})
    assert step(region(1, decided.status, running(0, {0, 1, 2}, epoch=2), held)).channels == 2
    empty = running(1, set(), epoch=2)
    served = step(region(1, decided.status, running(0, {0, 1, 2, 3}, epoch=2), empty))
    assert (served.channels, served.status.width, served.again_in) == (2, 1, 1.0)
    assert condition(served, "Resizing") == ("True", "RemovingChannels")
    later = step(region(1, served.status, *served_by(1, of=2), now=NOW + 1))
    assert (later.channels, later.status.changes[-1].finished_at) == (1, None)
    finished = step(region(1, later.status, *served_by(1, of=1), now=NOW + 1.5))
    assert finished.status.changes[-1].finished_at == to_rfc3339(NOW + 1.5)
    assert finished.again_in is None


def served_by(width: int, *, of: int) -> list[PeView]:
    """All four shards in `width` channels, of so many that there still are."""
    shards: list[set[int]] = [set() for _ in range(of)]
    for shard in range(4):
        shards[shard % width].add(shard)
    return [running(channel, mine, epoch=2) for channel, mine in enumerate(shards)]


def removing(width: int, of: int) -> ParallelRegionStatus:
    """A change from `of` to `width` that has just come to serve."""
    change = WidthChange(
        from_width=of,
        to_width=width,
        epoch=2,
        requested_at=to_rfc3339(NOW),
        serving_at=to_rfc3339(NOW),
    )
    assignment = {str(shard): shard % width for shard in range(4)}
    return ParallelRegionStatus(width=width, epoch=2, assignment=assignment, changes=[change])


def test_empty_channels_go_one_after_another() -> None:
    status = removing(1, of=4)
    counts = []
    there = 4
    for elapsed in (0.0, 0.9, 1.0, 1.2, 2.1, 3.0):
        decision = step(region(1, status, *served_by(1, of=there), now=NOW + elapsed))
        there = decision.channels
        counts.append(there)
    assert counts == [4, 4, 3, 3, 2, 1]


def test_channels_that_are_gone_do_not_come_back_only_to_go() -> None:
    status = removing(1, of=4)
    assert step(region(1, status, *served_by(1, of=2), now=NOW + 0.5)).channels == 2
    behind = step(region(1, status, *served_by(1, of=4), now=NOW - 5))
    assert (behind.channels, behind.again_in) == (4, 1.0)


def test_channels_that_are_wanted_again_stay() -> None:
    again = step(region(3, removing(1, of=4), *served_by(1, of=3), now=NOW + 1.5))
    assert again.channels == 3
    assert again.status.changes[0].finished_at == to_rfc3339(NOW + 1.5)
    begun = step(region(3, again.status, *served_by(1, of=3), now=NOW + 1.6))
    assert begun.status.changes[-1].to_width == 3


def test_a_larger_region_loses_an_eighth_of_its_channels_at_a_time() -> None:
    view = replace(region(1, removing(1, of=4), *served_by(1, of=4), now=NOW + 1), max_width=16)
    assert step(view).channels == 2


def test_a_surge_that_fails_is_taken_back_and_the_width_avoided_ever_longer() -> None:
    owner = running(0, {0, 1, 2, 3})
    cold = replace(running(1, set()), ready=False, message="no node has room")
    status, now = STEADY, NOW
    for backoff in (60.0, 120.0, 240.0):
        begun = step(region(2, status, owner, now=now))
        assert condition(begun, "Resizing") == ("True", "WarmingUp")
        now += 301
        failed = step(region(2, begun.status, owner, cold, now=now))
        assert [event.reason for event in failed.events] == ["WidthChangeRolledBack"]
        assert "job-1 (no node has room)" in failed.events[0].message
        assert (failed.channels, failed.status.width, failed.status.epoch) == (1, 1, 1)
        assert failed.again_in == backoff
        again = step(region(2, failed.status, owner, now=now + backoff - 1))
        assert (again.events, again.channels) == ((), 1)
        assert condition(again, "Resizing") == ("False", "RolledBack")
        other = step(region(3, again.status, owner, now=now + 1))
        assert condition(other, "Resizing") == ("True", "WarmingUp")
        status, now = again.status, now + backoff


def test_a_hand_over_that_fails_is_handed_back() -> None:
    status = handing_over()
    change = status.changes[0].model_copy(update={"decided_at": to_rfc3339(NOW)})
    status = status.model_copy(update={"changes": [change]})
    releases = {shard: ReleaseView(2, NOW, NOW, clean=True) for shard in (2, 3)}
    old = replace(running(0, {0, 1}, epoch=2), releases=releases)
    ill = ShardView("Failed", 2, NOW, None, "ValueError: not here")
    sick = replace(running(1, {2, 3}, epoch=2), held={2: ill, 3: ill})
    waiting = step(region(2, status, old, sick, now=NOW + 299))
    assert condition(waiting, "Resizing") == ("True", "HandingOver")
    back = step(region(2, status, old, sick, now=NOW + 300))
    assert [event.reason for event in back.events] == ["WidthChangeRolledBack", "ShardsMoving"]
    assert "shard 2 (ValueError: not here)" in back.events[0].message
    assert back.status.assignment == dict.fromkeys("0123", 0)
    assert back.spec_updates == {1: (frozenset(), 3)}
    assert back.again_in == 2.0, "its own deadline passes long before the width may be tried again"
    given_back = replace(sick, spec_shards=frozenset(), spec_epoch=3, held={}, applied_epoch=3)
    granted = step(region(2, back.status, old, given_back, now=NOW + 301))
    assert granted.spec_updates[0] == (frozenset({0, 1, 2, 3}), 3)
    whole = running(0, {0, 1, 2, 3}, epoch=3)
    served = step(region(2, granted.status, whole, given_back, now=NOW + 302))
    assert (served.status.width, served.channels) == (1, 1)
    done = step(region(2, served.status, whole, now=NOW + 303))
    assert condition(done, "Resizing") == ("False", "RolledBack")
    assert condition(done, "Ready") == ("True", "Serving")


def test_a_batch_that_does_not_end_is_named_in_the_rollback() -> None:
    """The new owner has nothing to say: the shard never came."""
    status = handing_over()
    change = status.changes[0].model_copy(update={"decided_at": to_rfc3339(NOW)})
    status = status.model_copy(update={"changes": [change]})
    long = ShardView("Stopping", 1, NOW - 900, NOW - 900)
    old = running(0, {0, 1}, epoch=2)
    old = replace(old, held={**old.held, 2: long, 3: long})
    back = step(region(2, status, old, running(1, set(), epoch=2), now=NOW + 300))
    (message,) = (e.message for e in back.events if e.reason == "WidthChangeRolledBack")
    assert "shard 2 (its last batch in channel 0 has not ended" in message
    assert "spark.streamgraft.maxOffsetsPerTrigger" in message


def test_channels_that_keep_their_shards_in_a_rollback_are_deleted() -> None:
    status = handing_over()
    back = WidthChange(
        from_width=2,
        to_width=1,
        epoch=3,
        requested_at=to_rfc3339(NOW),
        decided_at=to_rfc3339(NOW),
        moved_shards=[2, 3],
        rollback=True,
    )
    update = {"epoch": 3, "assignment": dict.fromkeys("0123", 0), "changes": [back]}
    status = status.model_copy(update=update)
    hung = replace(running(1, set(), epoch=3), held={2: HELD, 3: HELD}, applied_epoch=2)
    old = running(0, {0, 1}, epoch=3)
    patient = step(region(2, status, old, hung, now=NOW + 299))
    assert (patient.channels, patient.spec_updates) == (2, {})
    deleted = step(region(2, status, old, hung, now=NOW + 300))
    assert (deleted.channels, deleted.spec_updates) == (1, {})
    ending = PeView(1, 1, 0, exists=False, pod_alive=True)
    assert step(region(2, status, old, ending, now=NOW + 301)).spec_updates == {}
    gone = step(region(2, status, old, now=NOW + 302))
    assert gone.spec_updates == {0: (frozenset({0, 1, 2, 3}), 3)}


def test_a_width_that_served_is_no_longer_avoided() -> None:
    entry = avoid(STEADY, 2, "no room", NOW - 100)
    status = handing_over().model_copy(update={"avoided": [entry]})
    new = running(1, {2, 3}, epoch=2)
    served = step(region(2, status, running(0, {0, 1}, epoch=2), new))
    assert served.status.width == 2
    assert served.status.avoided == []


def test_a_clock_that_was_ahead_avoids_no_width_for_a_day() -> None:
    entry = avoid(STEADY, 2, "no room", NOW + 86_400)
    status = STEADY.model_copy(update={"avoided": [entry]})
    assert avoided(status, 2, NOW) is None
    assert avoided(status, 2, NOW + 86_400) is entry


def test_the_wanted_width_changes_while_warming_up() -> None:
    owner = running(0, {0, 1, 2, 3})
    begun = step(region(2, STEADY, owner))
    wider = step(region(3, begun.status, owner, now=NOW + 10))
    assert [change.to_width for change in wider.status.changes] == [3]
    withdrawn = step(region(1, wider.status, owner))
    assert withdrawn.status.changes == []
    assert [event.reason for event in withdrawn.events] == ["WidthChangeWithdrawn"]


def test_a_lost_status_is_taken_from_the_specs() -> None:
    pes = running(0, {0, 3}, epoch=5), running(1, {1, 2}, epoch=5)
    decision = step(region(2, ParallelRegionStatus(), *pes))
    assert decision.status.assignment == {"0": 0, "1": 1, "2": 1, "3": 0}
    assert decision.status.epoch == 6


def test_a_status_older_than_the_pes_changes_nothing() -> None:
    decision = step(region(1, STEADY, running(0, {0, 1}, epoch=2), running(1, set(), epoch=2)))
    assert (decision.spec_updates, decision.status, decision.channels) == ({}, STEADY, 2)


def loaded(pe: PeView, busy: dict[int, float], lag: int) -> PeView:
    held = {shard: replace(view, busy=busy[shard], lag=lag) for shard, view in pe.held.items()}
    return replace(pe, held=held)


def test_region_is_skewed_when_one_key_group_takes_all_of_a_channel() -> None:
    assignment = {"0": 0, "1": 1, "2": 1, "3": 1}
    status = STEADY.model_copy(update={"width": 2, "assignment": assignment})

    def seen(hot: float, beside: float, lag: int) -> RegionDecision:
        busy = {0: hot, 1: beside, 2: beside, 3: beside}
        pes = (running(0, {0}), running(1, {1, 2, 3}))
        return step(region(2, status, *(loaded(pe, busy, lag) for pe in pes)))

    skewed = seen(0.97, 0.1, 5000)
    assert condition(skewed, "Skewed") == ("True", "HotKeyGroup")
    message = find(skewed.status.conditions, "Skewed")
    assert message
    assert "key group 0" in message.message
    assert condition(seen(0.97, 0.1, 0), "Skewed") == ("False", "Balanced")
    assert condition(seen(0.5, 0.1, 5000), "Skewed") == ("False", "Balanced")


def test_a_hot_group_that_shares_its_channel_can_be_helped_by_width() -> None:
    busy = {0: 0.95, 1: 0.3, 2: 0.1, 3: 0.1}
    owner = loaded(running(0, {0, 1, 2, 3}), busy, 5000)
    assert condition(step(region(1, STEADY, owner)), "Skewed") == ("False", "Balanced")
    begun = step(region(2, STEADY, owner))
    decided = step(region(2, begun.status, owner, running(1, set())))
    channels = decided.status.assignment
    assert channels["0"] != channels["1"]


def test_skew_is_not_reported_before_all_loads_are_measured() -> None:
    decision = step(region(1, STEADY, running(0, {0, 1, 2, 3})))
    assert find(decision.status.conditions, "Skewed") is None


def test_channels_that_run_a_query_per_shard_are_named() -> None:
    """It was planned otherwise; the stage may be one of several."""
    assignment = {"0": 0, "1": 0, "2": 1, "3": 1}
    status = STEADY.model_copy(update={"width": 2, "assignment": assignment})
    strange = replace(running(1, {2, 3}), apart="it has a watermark")
    ready = find(step(region(2, status, running(0, {0, 1}), strange)).status.conditions, "Ready")
    assert ready
    assert ready.status == "True"
    assert ready.message == (
        "all 4 shards run; a query for each, instead of one per channel, in job-1: it has a"
        " watermark"
    )


def saving(savepoint: SavepointStatus | None = None, *, width: int = 2) -> RegionDecision:
    """Width 1 to `width` with strategy savepoint: the step at which its savepoint is like this."""
    owner = running(0, {0, 1, 2, 3})
    begun = step(replace(region(width, STEADY, owner), strategy="savepoint"))
    assert begun.savepoint == f"job-r-{NOW:.0f}"
    if savepoint is None:
        return begun
    still = replace(owner, spec_shards=frozenset(), held={})
    view = region(width, begun.status, still, now=NOW + 5)
    parked = frozenset({0} if savepoint.phase in ("Draining", "Saving") else ())
    saved = {begun.savepoint: savepoint}
    return step(replace(view, strategy="savepoint", parked=parked, savepoints=saved))


def test_savepoint_comes_before_new_channels() -> None:
    begun = saving()
    assert (begun.channels, begun.spec_updates) == (1, {})
    assert condition(begun, "Resizing") == ("True", "Saving")
    waiting = saving(SavepointStatus(phase="Saving"))
    assert (waiting.channels, waiting.spec_updates) == (1, {})


def test_shards_go_to_the_new_width_when_the_savepoint_is_complete() -> None:
    decided = saving(SavepointStatus(phase="Completed"))
    assert (decided.channels, decided.status.epoch, decided.savepoint) == (2, 2, None)
    assert decided.spec_updates == {0: (frozenset({0, 1}), 2), 1: (frozenset({2, 3}), 2)}
    assert decided.status.changes[-1].moved_shards == [0, 1, 2, 3]


def test_without_a_savepoint_the_old_width_goes_on() -> None:
    failed = saving(SavepointStatus(phase="Failed", message="no time"))
    assert failed.spec_updates == {0: (frozenset({0, 1, 2, 3}), 1)}
    assert condition(failed, "Resizing") == ("False", "RolledBack")
    assert failed.status.changes[-1].failure == "no savepoint: no time"


def test_no_change_begins_while_a_savepoint_is_taken() -> None:
    parked = replace(region(2, STEADY, running(0, {0, 1, 2, 3})), parked=frozenset({0}))
    decision = step(parked)
    assert decision.spec_updates[0] == (frozenset(), 1)
    assert decision.status.changes == []


def test_a_change_that_begins_in_the_moment_of_a_savepoint_waits_for_its_end() -> None:
    """Owners copy what they own, so no shard may get another one meanwhile."""
    owner, fresh = running(0, {0, 1, 2, 3}), running(1, set())
    begun = step(region(2, STEADY, owner)).status
    still = replace(owner, spec_shards=frozenset(), held={})
    warm = region(2, begun, still, fresh, now=NOW + 5)
    for width in (2, 1):
        waits = step(replace(warm, width=width, parked=frozenset({0})))
        assert (waits.status.epoch, waits.status.changes) == (1, begun.changes)
        assert step(replace(warm, width=width)).status.changes != begun.changes


def test_shards_that_stand_still_for_a_savepoint_are_not_handed_back() -> None:
    fresh = running(1, set())
    begun = step(region(2, STEADY, running(0, {0, 1, 2, 3}))).status
    decided = step(region(2, begun, running(0, {0, 1, 2, 3}), fresh)).status
    assert decided.epoch == 2
    still = replace(running(0, set()), spec_epoch=2)
    late = replace(region(2, decided, still, fresh, now=NOW + 1000), parked=frozenset({0}))
    assert step(late).status.changes == decided.changes
    over = replace(late, parked=frozenset(), parked_until=NOW + 990)
    assert step(over).status.changes == decided.changes, "its deadline counts from there"
    assert step(replace(over, now=NOW + 1290)).status.changes[0].failure


ASLEEP = ParallelRegionStatus(width=0, epoch=2, assignment={})


def sleepy(width: int, status: ParallelRegionStatus, *pes: PeView) -> RegionView:
    """Return a view of a region that may sleep."""
    return replace(region(width, status, *pes), may_sleep=True)


def test_it_falls_asleep_once_every_shard_has_stopped() -> None:
    owner = running(0, {0, 1, 2, 3})
    begun = step(sleepy(0, STEADY, owner))
    assert (begun.channels, begun.status.width, begun.status.assignment) == (1, 1, {})
    assert begun.spec_updates == {0: (frozenset(), 2)}
    emptied = replace(owner, spec_shards=frozenset(), spec_epoch=2)
    waiting = step(sleepy(0, begun.status, emptied))
    assert (waiting.channels, waiting.status.width) == (1, 1)
    silent = replace(emptied, held={})
    assert step(sleepy(0, begun.status, silent)).status.width == 1, "its spec may be an old one"
    stopped = step(sleepy(0, begun.status, replace(silent, applied_epoch=2)))
    assert (stopped.channels, stopped.status.width) == (0, 0)
    assert stopped.events[-1].reason == "Asleep"
    over = step(sleepy(0, stopped.status))
    assert condition(over, "Asleep") == ("True", "NoChannels")
    assert condition(over, "Ready") == ("True", "Asleep")
    assert condition(over, "Resizing") == ("False", "Settled")
    assert (over.channels, over.spec_updates) == (0, {})


def test_it_wakes_up_as_a_region_that_grows() -> None:
    begun = step(sleepy(2, ASLEEP))
    assert (begun.channels, begun.status.width) == (2, 0)
    assert condition(begun, "Resizing") == ("True", "WarmingUp")
    warm = [replace(running(number, set()), spec_epoch=2) for number in (0, 1)]
    decided = step(sleepy(2, begun.status, *warm))
    assert decided.status.epoch == 3
    assert sorted(shard for shards, _ in decided.spec_updates.values() for shard in shards) == [
        0,
        1,
        2,
        3,
    ]
    awake = [
        running(pe_id, set(shards), epoch)
        for pe_id, (shards, epoch) in decided.spec_updates.items()
    ]
    served = step(sleepy(2, decided.status, *awake))
    assert served.status.width == 2
    assert served.status.changes[-1].pause_seconds_max is None
    assert served.status.changes[-1].unclean_releases == 0
    assert condition(step(sleepy(2, served.status, *awake)), "Asleep") == ("False", "Awake")


def test_a_late_wake_up_serves_with_the_shards_that_run() -> None:
    begun = step(sleepy(1, ASLEEP)).status
    decided = step(sleepy(1, begun, replace(running(0, set()), spec_epoch=2))).status
    part = replace(running(0, {0, 1, 2}, 3), spec_shards=frozenset({0, 1, 2, 3}))
    late = replace(sleepy(1, decided, part), now=NOW + 400)
    served = step(late)
    assert served.status.width == 1
    assert condition(served, "Ready") == ("False", "ShardsNotRunning")


def test_no_change_begins_while_a_pe_is_missing() -> None:
    status = STEADY.model_copy(update={"width": 2, "assignment": {"0": 0, "1": 0, "2": 1, "3": 1}})
    lonely = running(0, {0, 1})
    assert step(region(1, status, lonely)).status.epoch == status.epoch
    assert step(region(1, status, lonely, running(1, {2, 3}))).status.epoch == status.epoch + 1
