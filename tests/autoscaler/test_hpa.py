"""The HPA library: the rules of Kubernetes' controller, as stories on a clock."""

from typing import Any

import pytest

from streamgraft_autoscaler import NotReady, Reason
from streamgraft_autoscaler.hpa import (
    Decision,
    HorizontalPodAutoscaler,
    PodUsage,
    Scale,
    SpecError,
    spec_of,
)
from streamgraft_autoscaler.hpa.spec import milli

MISSING = NotReady(Reason.STALE, "too old")


def metric(name: str = "demand", **target: Any) -> dict[str, Any]:
    """Return an Object metric; by default the signal itself is the wanted width."""
    described = {"apiVersion": "streamgraft.io/v1alpha1", "kind": "ParallelRegion", "name": "r"}
    target = target or {"type": "AverageValue", "averageValue": "1"}
    return {
        "type": "Object",
        "object": {"describedObject": described, "metric": {"name": name}, "target": target},
    }


def manifest(*metrics: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """Return an HPA of 1 to 10 replicas that reacts at once, unless `spec` says otherwise."""
    at_once = {"stabilizationWindowSeconds": 0}
    behavior = {"scaleUp": at_once, "scaleDown": at_once}
    base = {"minReplicas": 1, "maxReplicas": 10, "behavior": behavior}
    return {"spec": {**base, "metrics": list(metrics) or [metric()], **spec}}


class Story:
    """An HPA and its target, whose pods are ready at once."""

    def __init__(self, replicas: int, document: dict[str, Any], **gates: bool) -> None:
        self.replicas = replicas
        self.now = 0.0
        self._hpa = HorizontalPodAutoscaler(spec_of(document), **gates)

    def look(self, *, after: float = 15.0, **readings: Any) -> Decision:
        """Let the HPA look again, `after` seconds later."""
        self.now += after
        scale = Scale(self.replicas, self.replicas, self.replicas, self.replicas)
        decision = self._hpa.reconcile(self.now, scale, readings)
        self.replicas = decision.replicas
        return decision


@pytest.mark.parametrize(
    ("demand", "replicas"),
    [(4.4, 4), (3.6, 4), (4.41, 5), (3.59, 4), (3.0, 3), (2.5, 3), (0.0, 1), (99.0, 8)],
)
def test_average_value_is_rounded_up_outside_of_the_tolerance(demand: float, replicas: int) -> None:
    """The default policies let 4 become 8 at most."""
    assert Story(4, manifest()).look(demand=demand).replicas == replicas


def test_value_is_multiplied_by_the_ready_pods() -> None:
    hpa = HorizontalPodAutoscaler(spec_of(manifest(metric(value="1"))))
    assert hpa.reconcile(1.0, Scale(4, 4, 4, 3), {"demand": 1.5}).replicas == 5
    assert hpa.reconcile(2.0, Scale(4, 4, 4, 0), {"demand": 1.5}).replicas == 1


def test_the_largest_proposal_wins_and_negative_ones_take_no_part() -> None:
    story = Story(4, manifest(metric("gate", value="1"), metric("busy", value="800m")))
    assert story.look(gate=-1.5, busy=0.4).replicas == 2
    assert story.look(gate=1.5, busy=0.4).replicas == 3


def test_a_missing_metric_lets_grow_but_not_shrink() -> None:
    story = Story(4, manifest(metric("one"), metric("other")))
    held = story.look(one=2.0, other=MISSING)
    assert (held.replicas, held.desired) == (4, None)
    assert "Stale" in held.message
    assert story.look(one=6.0, other=MISSING).replicas == 6
    assert story.look(one=MISSING, other=MISSING).replicas == 6


def test_scale_down_takes_the_largest_recommendation_of_its_window() -> None:
    down = {"stabilizationWindowSeconds": 60}
    story = Story(8, manifest(behavior={"scaleDown": down}))
    assert [story.look(demand=2.0).replicas for _ in range(5)] == [8, 8, 8, 8, 2]


def test_scale_up_takes_the_smallest_recommendation_of_its_window() -> None:
    up = {"stabilizationWindowSeconds": 30}
    story = Story(2, manifest(behavior={"scaleUp": up}))
    assert [story.look(demand=4.0).replicas for _ in range(3)] == [2, 2, 4]
    assert [story.look(demand=demand).replicas for demand in (8.0, 6.0, 8.0)] == [4, 6, 6]


def test_policies_limit_what_a_period_may_change() -> None:
    up = {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}]}
    story = Story(2, manifest(behavior={"scaleUp": up}))
    looks = [story.look(demand=9.0) for _ in range(5)]
    assert [look.replicas for look in looks] == [4, 4, 4, 4, 6]
    assert looks[1].limit == "ScaleUpLimit"


def test_percent_rounds_towards_more_replicas() -> None:
    slow = [{"type": "Percent", "value": 10, "periodSeconds": 15}]
    behavior = {"scaleUp": {"policies": slow}, "scaleDown": {"policies": slow}}
    behavior["scaleDown"]["stabilizationWindowSeconds"] = 0  # type: ignore[assignment]
    assert Story(5, manifest(behavior=behavior)).look(demand=9.0).replicas == 6
    assert Story(5, manifest(behavior=behavior)).look(demand=1.0).replicas == 4


@pytest.mark.parametrize(("select", "replicas"), [("Max", 9), ("Min", 5), ("Disabled", 4)])
def test_select_policy(select: str, replicas: int) -> None:
    policies = [
        {"type": "Pods", "value": 1, "periodSeconds": 15},
        {"type": "Percent", "value": 200, "periodSeconds": 15},
    ]
    up = {"policies": policies, "selectPolicy": select}
    assert Story(4, manifest(behavior={"scaleUp": up})).look(demand=9.0).replicas == replicas


def test_without_behavior_growth_is_a_factor_and_shrinking_waits_five_minutes() -> None:
    story = Story(1, manifest(behavior=None))
    assert [story.look(demand=9.0).replicas for _ in range(3)] == [4, 8, 9]
    assert [story.look(demand=2.0).replicas for _ in range(20)][-1] == 9
    assert story.look(demand=2.0).replicas == 2


def test_tolerance_of_its_own() -> None:
    up = {"tolerance": "0.5", "stabilizationWindowSeconds": 0}
    story = Story(4, manifest(behavior={"scaleUp": up}))
    assert story.look(demand=6.0).replicas == 4
    assert story.look(demand=6.1).replicas == 7


def test_bounds_come_before_metrics() -> None:
    assert Story(20, manifest()).look(demand=MISSING).replicas == 10
    assert Story(1, manifest(minReplicas=3)).look(demand=MISSING).replicas == 3


def test_the_hpa_leaves_zero_only_if_it_went_there() -> None:
    story = Story(1, manifest(minReplicas=0), scale_to_zero=True)
    assert story.look(demand=0.0).replicas == 0
    assert story.look(demand=2.5).replicas == 3
    by_hand = Story(0, manifest(minReplicas=0), scale_to_zero=True)
    assert by_hand.look(demand=2.5).replicas == 0


def cpu(percent: int) -> dict[str, Any]:
    """Return a Resource metric with a target in percent of the requests."""
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


@pytest.mark.parametrize(
    ("states", "replicas"),
    [
        (["measured"] * 4, 8),
        # Who is silent counts as idle when growing: 4 x 160 % over six pods is 107 %.
        (["measured"] * 4 + ["missing"] * 2, 8),
        (["measured"] * 4 + ["unready"] * 12, 4),
    ],
)
def test_pods_that_are_silent_damp_growing(states: list[Any], replicas: int) -> None:
    pods = [PodUsage(state, 1600 if state == "measured" else 0, 1000) for state in states]
    hpa = HorizontalPodAutoscaler(spec_of(manifest(cpu(80))))
    scale = Scale(4, 4, len(pods), 4)
    assert hpa.reconcile(1.0, scale, {"cpu": pods}).replicas == replicas


def test_pods_that_are_silent_count_as_full_when_shrinking() -> None:
    pods = [PodUsage("measured", 200, 1000)] * 3 + [PodUsage("missing", 0, 1000)]
    hpa = HorizontalPodAutoscaler(spec_of(manifest(cpu(80))))
    decision = hpa.reconcile(1.0, Scale(4, 4, 4, 3), {"cpu": pods})
    assert decision.replicas == 2  # (3 x 20 % + 100 %) / 4 = 40 %


def test_no_pod_with_a_sample_is_no_reason_to_change() -> None:
    hpa = HorizontalPodAutoscaler(spec_of(manifest(cpu(80))))
    pods = [PodUsage("missing", 0, 1000)]
    assert hpa.reconcile(1.0, Scale(4, 4, 1, 0), {"cpu": pods}).replicas == 4


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1000), ("800m", 800), ("0.8", 800), ("1k", 1_000_000), ("1.0001", 1001), ("-2", -2000)],
)
def test_quantities_are_thousandths_rounded_up(text: str, value: int) -> None:
    assert milli(text) == value


@pytest.mark.parametrize("document", [{}, {"spec": {"metrics": []}}, {"spec": None}])
def test_what_is_no_hpa_is_refused(document: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match="not a HorizontalPodAutoscaler"):
        spec_of(document)
