"""The generated HorizontalPodAutoscaler: what a region's autoscaling becomes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from streamgraft_autoscaler.hpa import spec_of
from streamgraft_common.adl import Autoscaling, Period
from streamgraft_common.resources import PARALLEL_REGION
from streamgraft_operator.manifests.autoscaler import autoscaler
from streamgraft_operator.region.autoscaler import advised_width

MANIFESTS = Path(__file__).parents[3] / "deploy/hpa"


def region(**settings: Any) -> dict[str, Any]:
    """Return a region of at most 16 channels with this autoscaling."""
    asked = Autoscaling(**settings).model_dump(by_alias=True, exclude_none=True)
    spec = {"job": "j", "region": "r", "width": 1, "maxWidth": 16, "key": ["k"]}
    return PARALLEL_REGION.manifest("j-r", "ns", {**spec, "autoscaling": asked}, uid="u1")


def generated(**settings: Any) -> dict[str, Any]:
    """Return the spec of what is generated."""
    made = autoscaler(region(**settings))
    assert made is not None
    spec: dict[str, Any] = made["spec"]
    return spec


def test_without_autoscaling_there_is_none() -> None:
    plain = region()
    del plain["spec"]["autoscaling"]
    assert autoscaler(plain) is None


def test_it_belongs_to_the_region() -> None:
    made = autoscaler(region())
    assert made is not None
    metadata = made["metadata"]
    assert (metadata["name"], metadata["namespace"]) == ("j-r", "ns")
    (owner,) = metadata["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("ParallelRegion", "u1", True)


def test_demand_is_the_width_itself() -> None:
    spec = generated()
    (metric,) = spec_of({"spec": spec}).metrics
    assert (metric.name, metric.target, metric.target_value) == ("demand", "AverageValue", 1000)


def test_the_policy_of_the_paper() -> None:
    metrics = spec_of({"spec": generated(metric="lag-utilization", target_utilization=0.7)}).metrics
    assert [(m.name, m.target, m.target_value) for m in metrics] == [
        ("relative_lag_change_rate_gated", "Value", 1000),
        ("utilization", "Value", 700),
    ]


def test_a_region_that_could_never_wake_up_is_refused() -> None:
    with pytest.raises(ValidationError, match="min_width 0 needs metric demand"):
        Autoscaling(metric="lag-utilization", min_width=0)


@pytest.mark.parametrize(
    "settings",
    [{"mode": "advise"}, {"periods": [Period(start="22:00", end="06:00", min_width=2)]}],
)
def test_what_earlier_releases_let_through_is_managed_as_by_them(settings: dict[str, Any]) -> None:
    """The build refuses it. Jobs that run have it in their bundles and regions."""
    assert generated(metric="lag-utilization", **settings)


@pytest.mark.parametrize(
    ("settings", "widths"),
    [
        ({}, (1, 16)),
        ({"min_width": 2, "max_width": 8}, (2, 8)),
        ({"max_width": 99}, (1, 16)),
        ({"max_cost_per_hour": 1.0, "channel_cost_per_hour": 0.3}, (1, 3)),
        ({"min_width": 9, "max_cost_per_hour": 1.0, "channel_cost_per_hour": 0.2}, (5, 5)),
        ({"max_cost_per_hour": 0.1, "channel_cost_per_hour": 0.3}, (1, 1)),
    ],
)
def test_limits_and_costs(settings: dict[str, Any], widths: tuple[int, int]) -> None:
    spec = generated(**settings)
    assert (spec["minReplicas"], spec["maxReplicas"]) == widths


def test_waiting_times_are_the_region_s() -> None:
    made = spec_of({"spec": generated(scale_up_seconds=4, scale_down_seconds=12)})
    assert made.scale_up.stabilization_seconds == 4
    assert made.scale_down.stabilization_seconds == 12


@pytest.mark.parametrize(("metric", "seconds"), [("demand", 120), ("lag-utilization", 300)])
def test_demand_shrinks_sooner(metric: str, seconds: int) -> None:
    made = spec_of({"spec": generated(metric=metric)})
    assert made.scale_down.stabilization_seconds == seconds


def test_shipped_demand_is_the_generated_one() -> None:
    shipped = spec_of(yaml.safe_load((MANIFESTS / "demand.yaml").read_text()))
    made = spec_of({"spec": generated()})
    # API servers before Kubernetes 1.33 refuse a manifest with tolerances.
    assert (shipped.scale_up, shipped.scale_down) == (
        replace(made.scale_up, tolerance=0.1),
        replace(made.scale_down, tolerance=0.1),
    )


@pytest.mark.parametrize(("metric", "tolerance"), [("demand", 0.0), ("lag-utilization", 0.1)])
def test_no_width_that_demand_asks_for_is_too_near(metric: str, tolerance: float) -> None:
    """The shares of the paper's policy are measured; small differences are noise."""
    made = spec_of({"spec": generated(metric=metric)})
    assert (made.scale_up.tolerance, made.scale_down.tolerance) == (tolerance, tolerance)


def test_advice_changes_no_width() -> None:
    made = spec_of({"spec": generated(mode="advise")})
    assert (made.scale_up.select, made.scale_down.select) == ("Disabled", "Disabled")


@pytest.mark.parametrize(("min_width", "least"), [(0, 0), (1, 1), (2, 1)])
def test_advice_has_no_limits_that_would_change_a_width(min_width: int, least: int) -> None:
    """Kubernetes' controller brings a width to within them, whatever the behavior says."""
    made = generated(mode="advise", min_width=min_width, max_width=3)
    assert (made["minReplicas"], made["maxReplicas"]) == (least, generated()["maxReplicas"])


@pytest.mark.parametrize(
    ("average", "replicas", "advice"),
    [("2", 2, 4), ("1334m", 3, 4), ("500m", 2, 1), ("1", 3, 3)],
)
def test_advice_is_read_from_the_status(average: str, replicas: int, advice: int) -> None:
    current = {"type": "Object", "object": {"current": {"averageValue": average}}}
    status = {"currentReplicas": replicas, "currentMetrics": [current]}
    assert advised_width({"status": status}) == advice


def test_there_is_no_advice_without_a_value() -> None:
    assert advised_width({}) is None
    assert advised_width({"status": {"currentMetrics": None}}) is None
