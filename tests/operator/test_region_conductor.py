"""The region conductor, step by step."""

from dataclasses import replace

import pytest

from streamgraft_common.resources import ParallelRegionStatus, WidthChange
from streamgraft_operator.conditions import find
from streamgraft_operator.conductors.region import (
    PeView,
    RegionDecision,
    RegionView,
    ReleaseView,
    ShardView,
    step,
)
from streamgraft_operator.timestamps import to_rfc3339

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
    assert decided.spec_updates == {0: (frozenset({0, 1}), 2)}
    assert decided.status.width == 1


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
        (replace(OLD, pod_alive=False, held={}), {2, 3}),
    ],
    ids=["in spec", "held", "unconfirmed", "applied", "released", "released before", "pod gone"],
)
def test_a_shard_is_granted_when_nobody_can_have_it(old: PeView, granted: set[int]) -> None:
    decision = step(region(2, handing_over(), old, NEW))
    shards, _ = decision.spec_updates.get(1, (frozenset(), 2))
    assert shards == granted


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
    assert decided.spec_updates == {1: (frozenset(), 2)}
    held = replace(running(1, set(), epoch=2), held={3: HELD})
    assert step(region(1, decided.status, running(0, {0, 1, 2}, epoch=2), held)).channels == 2
    empty = running(1, set(), epoch=2)
    served = step(region(1, decided.status, running(0, {0, 1, 2, 3}, epoch=2), empty))
    assert (served.channels, served.status.width) == (1, 1)
    assert condition(served, "Resizing") == ("True", "RemovingChannels")


def test_a_surge_that_fails_is_not_retried_until_another_width_is_wanted() -> None:
    owner, cold = running(0, {0, 1, 2, 3}), replace(running(1, set()), ready=False)
    begun = step(region(2, STEADY, owner))
    failed = step(region(2, begun.status, owner, cold, now=NOW + 301))
    assert [event.reason for event in failed.events] == ["SurgeFailed"]
    assert (failed.channels, failed.status.width, failed.status.epoch) == (1, 1, 1)
    again = step(region(2, failed.status, owner, now=NOW + 400))
    assert (again.events, again.channels) == ((), 1)
    assert condition(again, "Resizing") == ("False", "SurgeFailed")
    back = step(region(1, again.status, owner, now=NOW + 500))
    retried = step(region(2, back.status, owner, now=NOW + 600))
    assert condition(retried, "Resizing") == ("True", "WarmingUp")


def test_the_wish_changes_while_warming_up() -> None:
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
