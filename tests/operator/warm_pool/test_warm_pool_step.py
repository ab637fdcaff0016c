"""How large a warm pool is, and when it is filled."""

from dataclasses import replace

import pytest

from streamgraft_operator.pe.step import WarmPodView
from streamgraft_operator.warm_pool.step import (
    CATCH_UP_SECONDS,
    SETTLED_SECONDS,
    PoolDecision,
    PoolView,
    step,
)

WARM = WarmPodView("w", "d", ready=True, usable=True, running=True)
STARTING = replace(WARM, name="s", ready=False, running=False)
OUTDATED = replace(WARM, name="o", driver="older")
FAILED = replace(WARM, name="f", ready=False, usable=False, running=False)


@pytest.mark.parametrize(
    ("size", "calm_seconds", "pods", "decision"),
    [
        (2, 9.0, (), PoolDecision(2, ())),
        (2, 9.0, (WARM, STARTING), PoolDecision(0, ())),
        (2, None, (WARM,), PoolDecision(0, (), held="NotCalm")),
        (1, 9.0, (STARTING, WARM), PoolDecision(0, ("s",))),
        (0, 9.0, (WARM,), PoolDecision(0, ("w",))),
        (1, 9.0, (OUTDATED,), PoolDecision(1, ("o",))),
        (1, None, (OUTDATED,), PoolDecision(0, ("o",), held="NotCalm")),
    ],
    ids=["empty", "full", "not now", "surplus", "none wanted", "other settings", "outdated"],
)
def test_size(
    size: int, calm_seconds: float | None, pods: tuple[WarmPodView, ...], decision: PoolDecision
) -> None:
    assert step(PoolView(size, "d", calm_seconds, pods)) == decision


def test_it_is_filled_once_the_job_has_settled() -> None:
    """What has just started needs the CPU itself."""
    soon = PoolDecision(0, (), again_in=SETTLED_SECONDS - 1.0, held="NotCalm")
    assert step(PoolView(1, "d", 1.0, ())) == soon
    assert step(PoolView(1, "d", 1.0, (WARM,))) == PoolDecision(0, ())
    assert step(PoolView(1, "d", SETTLED_SECONDS, ())) == PoolDecision(1, ())


def test_where_cpu_is_short_one_driver_starts_after_the_other() -> None:
    few = PoolView(3, "d", 9.0, (), at_once=1)
    assert step(few).create == 1
    assert step(replace(few, pods=(STARTING,))).create == 0
    assert step(replace(few, pods=(WARM,))).create == 1
    assert step(replace(few, at_once=2)).create == 2


def test_it_is_filled_late_where_pes_are_behind() -> None:
    """What they need to catch up are the cores that drivers start on; some never catch up."""
    behind = PoolView(1, "d", 9.0, (), behind=True)
    later = PoolDecision(0, (), again_in=CATCH_UP_SECONDS - 9.0, held="Behind")
    assert step(behind) == later
    assert step(replace(behind, calm_seconds=CATCH_UP_SECONDS)) == PoolDecision(1, ())
    assert step(replace(behind, pods=(OUTDATED,))).delete == ("o",)


def test_nothing_waits_in_the_room_that_a_pe_needs() -> None:
    crowded = PoolView(2, "d", 9.0, (WARM, STARTING), crowded=True)
    assert step(crowded) == PoolDecision(0, ("w", "s"), held="NoRoom")
    assert step(replace(crowded, pods=())) == PoolDecision(0, (), held="NoRoom")
    assert step(replace(crowded, size=0, pods=())) == PoolDecision(0, ())


def test_pod_that_failed_keeps_its_place_for_a_while() -> None:
    view = PoolView(1, "d", calm_seconds=9.0, pods=(FAILED,), ended_seconds=(("f", 20.0),))
    assert step(view) == PoolDecision(0, (), again_in=40.0, held="DriverFailed")
    later = replace(view, ended_seconds=(("f", 60.0),))
    assert step(later) == PoolDecision(1, ("f",))
