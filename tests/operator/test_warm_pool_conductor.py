"""How large a warm pool is, and when it is filled."""

from dataclasses import replace

import pytest

from streamgraft_operator.conductors.pod import WarmPodView
from streamgraft_operator.conductors.warm_pool import PoolDecision, PoolView, step

WARM = WarmPodView("w", "d", ready=True, usable=True, running=True)
STARTING = replace(WARM, name="s", ready=False, running=False)
OUTDATED = replace(WARM, name="o", driver="older")
FAILED = replace(WARM, name="f", ready=False, usable=False, running=False)


@pytest.mark.parametrize(
    ("size", "calm", "pods", "decision"),
    [
        (2, True, (), PoolDecision(2, ())),
        (2, True, (WARM, STARTING), PoolDecision(0, ())),
        (2, False, (WARM,), PoolDecision(0, ())),
        (1, True, (STARTING, WARM), PoolDecision(0, ("s",))),
        (0, True, (WARM,), PoolDecision(0, ("w",))),
        (1, True, (OUTDATED,), PoolDecision(1, ("o",))),
        (1, False, (OUTDATED,), PoolDecision(0, ("o",))),
    ],
    ids=["empty", "full", "not now", "surplus", "none wanted", "other settings", "outdated"],
)
def test_size(size: int, calm: bool, pods: tuple[WarmPodView, ...], decision: PoolDecision) -> None:
    assert step(PoolView(size, "d", calm, pods)) == decision


def test_pod_that_failed_keeps_its_place_for_a_while() -> None:
    view = PoolView(1, "d", calm=True, pods=(FAILED,), ended_seconds=(("f", 20.0),))
    assert step(view) == PoolDecision(0, (), again_in=40.0)
    later = replace(view, ended_seconds=(("f", 60.0),))
    assert step(later) == PoolDecision(1, ("f",))
