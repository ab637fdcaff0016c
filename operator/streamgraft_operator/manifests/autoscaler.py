"""The HorizontalPodAutoscaler of a region, from its `autoscaling`."""

from typing import Any

from streamgraft_common import names
from streamgraft_common.adl import Autoscaling
from streamgraft_common.kinds import AUTOSCALER
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import PARALLEL_REGION
from streamgraft_operator.kit.parsed import region_spec

_TOLERANCE = "tolerance"
AT_ONCE_SECONDS = 15
"""Period of the rate limits, which limit nothing: a width is reached in one step."""


def autoscaler(region: Object) -> Object | None:
    """Return the autoscaler that a ParallelRegion asks for, None if it asks for none.

    Everything that the API server would fill in is there, so that any difference is a drift.
    """
    spec = region_spec(region)
    settings, metadata = spec.autoscaling, region["metadata"]
    if settings is None:
        return None
    target = {
        "apiVersion": names.API_VERSION,
        "kind": PARALLEL_REGION.kind,
        "name": metadata["name"],
    }
    owner = {**target, "uid": metadata["uid"], "controller": True, "blockOwnerDeletion": False}
    labels = {names.LABEL_JOB: spec.job, names.LABEL_REGION: spec.region}
    return {
        "apiVersion": AUTOSCALER.api_version,
        "kind": AUTOSCALER.kind,
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "labels": labels,
            "ownerReferences": [owner],
        },
        "spec": {
            "scaleTargetRef": target,
            "minReplicas": settings.smallest_width(spec.max_width),
            "maxReplicas": settings.largest_width(spec.max_width),
            "metrics": _metrics(settings, target),
            "behavior": _behavior(settings),
        },
    }


def _metrics(settings: Autoscaling, region: dict[str, str]) -> list[dict[str, Any]]:
    def metric(name: str, target: dict[str, str]) -> dict[str, Any]:
        source = {"describedObject": region, "metric": {"name": name}, "target": target}
        return {"type": "Object", "object": source}

    if settings.metric == "demand":
        # AverageValue 1: the signal itself is the width, whether the pods are ready or not.
        return [metric("demand", {"type": "AverageValue", "averageValue": "1"})]
    share = f"{round(settings.target_utilization * 1000)}m"
    target = "1" if settings.target_utilization == 1 else share
    return [
        metric("relative_lag_change_rate_gated", {"type": "Value", "value": "1"}),
        metric("utilization", {"type": "Value", "value": target}),
    ]


def _behavior(settings: Autoscaling) -> dict[str, Any]:
    select = "Disabled" if settings.mode == "advise" else "Max"
    # The demand is a width that the policy has weighed already. A step of a tenth is a step.
    tolerance = {_TOLERANCE: "0"} if settings.metric == "demand" else {}

    def rules(seconds: int, limit: dict[str, Any]) -> dict[str, Any]:
        return {
            "stabilizationWindowSeconds": seconds,
            "selectPolicy": select,
            "policies": [{**limit, "periodSeconds": AT_ONCE_SECONDS}],
            **tolerance,
        }

    return {
        "scaleUp": rules(settings.scale_up_seconds, {"type": "Pods", "value": 1024}),
        "scaleDown": rules(settings.shrinks_after_seconds, {"type": "Percent", "value": 100}),
    }


def has_tolerance(item: Object) -> bool:
    """Return whether an autoscaler has tolerances of its own."""
    return any(_TOLERANCE in rules for rules in _rules(item).values())


def without_tolerance(item: Object) -> Object:
    """Return an autoscaler as API servers keep it that don't know of tolerances."""
    behavior = {
        direction: {name: value for name, value in rules.items() if name != _TOLERANCE}
        for direction, rules in _rules(item).items()
    }
    return {**item, "spec": {**item["spec"], "behavior": behavior}}


def _rules(item: Object) -> dict[str, Any]:
    """Return the rules of an autoscaler, which a user may have removed, by direction."""
    behavior = item["spec"].get("behavior") or {}
    return {direction: rules or {} for direction, rules in behavior.items()}
