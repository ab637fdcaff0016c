"""The pod conductor and the launch rules, as values."""

from dataclasses import replace
from itertools import pairwise

import pytest

from streamgraft_common.content import Content
from streamgraft_common.resources import ProcessingElementStatus
from streamgraft_operator.pe.launches import Relaunch, not_before, raised, relaunch
from streamgraft_operator.pe.step import PeLaunch, PodDecision, PodView, WarmPodView, step

CONTENT = Content("driver", "place", "code", "plan", "notes")
PE = PeLaunch(
    uid="u",
    launch_count=2,
    content_id=str(CONTENT),
    config_content_id=str(CONTENT),
    bundle_exists=True,
    driver="driver",
)
POD = PodView(
    name="j-0-2",
    launch=2,
    pe_uid="u",
    phase="Running",
    scheduled=True,
    deleting=False,
    content_id=str(CONTENT),
)
WARM = WarmPodView("j-warm-b", "driver", ready=True, usable=True, running=True)
OLDER = replace(POD, name="j-0-1", launch=1)
NAMESAKE = replace(POD, pe_uid="of a PE that was deleted")


def test_pod_is_created_when_everything_is_there() -> None:
    assert step(PE, (), 0.0) == PodDecision(delete=(), create=True)


def test_pod_that_exists_is_left_alone() -> None:
    assert step(PE, (POD,), 0.0) == PodDecision(delete=())


@pytest.mark.parametrize(
    ("lacking", "waiting_for"),
    [
        ({"config_content_id": None}, "its ConfigMap"),
        ({"config_content_id": "older"}, "its ConfigMap"),
        ({"bundle_exists": False}, "the ConfigMap of the bundle"),
    ],
)
def test_pod_waits_for_what_it_mounts(lacking: dict[str, object], waiting_for: str) -> None:
    decision = step(replace(PE, **lacking), (), 0.0)  # type: ignore[arg-type]
    assert not decision.create
    assert decision.waiting_for == waiting_for


def test_pod_is_not_created_before_the_first_launch() -> None:
    assert not step(replace(PE, launch_count=0), (), 0.0).create


def test_pod_that_vanished_is_not_created_again_for_the_same_launch() -> None:
    assert step(replace(PE, pod="j-0-2", pool=(WARM,)), (), 0.0) == PodDecision(delete=())


@pytest.mark.parametrize("old", [OLDER, NAMESAKE])
def test_older_pod_has_to_end_first(old: PodView) -> None:
    assert step(PE, (old,), 0.0) == PodDecision(
        delete=(old.name,), waiting_for=f"pod {old.name} to end"
    )
    going = replace(old, deleting=True)
    assert step(PE, (going,), 0.0).delete == ()
    assert not step(PE, (going,), 0.0).create


def test_pod_that_has_ended_is_in_the_way_only_if_it_may_have_the_name() -> None:
    failed = replace(OLDER, phase="Failed")
    assert step(PE, (failed,), 0.0) == PodDecision(delete=("j-0-1",), create=True)
    assert step(replace(PE, pool=(WARM,)), (failed,), 0.0).adopt == WARM.name
    assert not step(PE, (replace(NAMESAKE, phase="Failed"),), 0.0).create


def test_pods_of_a_deleted_pe_go() -> None:
    assert step(None, (POD, OLDER), 0.0).delete == ("j-0-2", "j-0-1")


def test_back_off_is_awaited() -> None:
    late = replace(PE, not_before=100.0)
    assert step(late, (), 97.5).again_in == 2.5
    assert not step(late, (), 97.5).create
    assert step(late, (), 100.0).create


@pytest.mark.parametrize(
    ("pool", "adopted"),
    [
        ([WARM], "j-warm-b"),
        ([replace(WARM, name="j-warm-a", ready=False), WARM], "j-warm-b"),
        ([replace(WARM, name="j-warm-c", ready=False, running=False)], "j-warm-c"),
        ([replace(WARM, driver="other")], None),
        ([replace(WARM, usable=False)], None),
    ],
    ids=["warm", "the warmest", "still starting", "other settings", "ended"],
)
def test_launch_takes_the_warmest_pod_that_fits(
    pool: list[WarmPodView], adopted: str | None
) -> None:
    decision = step(replace(PE, pool=tuple(pool)), (), 0.0)
    assert (decision.adopt, decision.create) == (adopted, adopted is None)


def test_channels_from_the_pool_are_spread_over_nodes() -> None:
    """Where the node of the first by name has a channel, the other one's is taken; but only of
    those that are as warm."""
    near, far = replace(WARM, name="j-warm-a", node="a"), replace(WARM, node="b")
    pe = replace(PE, pool=(near, far), alike=("a",))
    assert step(pe, (), 0.0).adopt == far.name
    assert step(replace(pe, alike=("a", "b", "b")), (), 0.0).adopt == near.name
    assert step(replace(pe, pool=(near, replace(far, ready=False))), (), 0.0).adopt == near.name


def test_adoption_waits_like_a_new_pod() -> None:
    assert step(replace(PE, pool=(WARM,)), (OLDER,), 0.0).adopt is None
    assert step(replace(PE, not_before=9.0, pool=(WARM,)), (), 0.0).adopt is None


def test_second_pod_of_a_launch_goes() -> None:
    other = replace(POD, name="j-warm-b")
    named = replace(PE, pod="j-warm-b")
    assert step(named, (POD, other), 0.0) == PodDecision(delete=("j-0-2",))


STATUS = ProcessingElementStatus(launch_count=2, pod="j-0-2")


@pytest.mark.parametrize(
    ("pods", "cause"),
    [
        ([POD], None),
        ([replace(POD, phase="Failed")], Relaunch("PodFailed", failed=True)),
        ([replace(POD, phase="Succeeded")], Relaunch("PodCompleted", failed=True)),
        ([replace(POD, deleting=True)], Relaunch("PodDeleted")),
        ([replace(POD, content_id="older")], Relaunch("GraphChanged")),
        ([replace(POD, content_id=str(replace(CONTENT, plan="older")))], None),
        ([replace(POD, content_id=str(replace(CONTENT, driver="d")))], Relaunch("GraphChanged")),
        ([replace(OLDER, phase="Failed"), POD], None),
        ([], Relaunch("PodDeleted")),
        ([NAMESAKE], Relaunch("PodDeleted")),
    ],
)
def test_launch_is_over(pods: list[PodView], cause: Relaunch | None) -> None:
    assert relaunch(STATUS, CONTENT, pods, "u") == cause


def test_pod_that_was_never_seen_was_not_deleted() -> None:
    fresh = STATUS.model_copy(update={"pod": None})
    assert relaunch(fresh, CONTENT, [], "u") is None


def test_failures_in_a_row_wait_longer_each_time() -> None:
    status, delays = STATUS, []
    for _ in range(9):
        status = raised(status, Relaunch("PodFailed", failed=True), 0.0, now=1000.0)
        delays.append(not_before(status, 1000.0) - 1000.0)
    assert delays[:3] == [1.0, 2.0, 4.0]
    assert delays[-1] == 60.0
    assert all(early <= late for early, late in pairwise(delays))
    assert status.launch_count == 11
    assert status.failure_count == 9


def test_back_off_is_between_starts() -> None:
    """What ran for longer than the back-off is launched at once: no user waits for nothing."""
    status = STATUS.model_copy(update={"failure_count": 3})
    soon = raised(status, Relaunch("PodFailed", failed=True), 3.0, now=1000.0)
    assert (soon.failure_count, not_before(soon, 1000.0)) == (4, 1005.0)
    later = raised(status, Relaunch("PodFailed", failed=True), 9.0, now=1000.0)
    assert (later.failure_count, later.not_before) == (4, None)


def test_clocks_that_differ_make_no_back_off_longer() -> None:
    """The node's is ahead by an hour, or that of the replica that wrote the status by a day."""
    soon = raised(STATUS, Relaunch("PodFailed", failed=True), -3600.0, now=1000.0)
    assert not_before(soon, 1000.0) == 1001.0
    ahead = raised(STATUS, Relaunch("PodFailed", failed=True), 0.0, now=87_400.0)
    assert not_before(ahead, 1000.0) == 1060.0


def test_failure_after_a_long_run_counts_as_the_first() -> None:
    status = STATUS.model_copy(update={"failure_count": 6})
    after = raised(status, Relaunch("PodFailed", failed=True), 3600.0, now=1000.0)
    assert after.failure_count == 1


def test_deleted_pod_waits_for_nothing() -> None:
    status = STATUS.model_copy(update={"failure_count": 6, "not_before": "2030-01-01T00:00:00Z"})
    after = raised(status, Relaunch("PodDeleted"), 1.0, now=1000.0)
    assert (after.failure_count, not_before(after, 1000.0), after.pod) == (0, 0.0, None)
