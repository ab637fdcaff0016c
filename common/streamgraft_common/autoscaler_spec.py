"""What the HorizontalPodAutoscaler of a region is told: one text for the operator, which makes it,
and for whoever replays what it would do. Pure.
"""

from collections.abc import Mapping
from typing import Any

from streamgraft_common.adl import Autoscaling

AT_ONCE_SECONDS = 15
"""Period of the rate limits, which limit nothing: a width is reached in one step."""


def autoscaler_spec(
    settings: Autoscaling, shards: int, region: Mapping[str, str]
) -> dict[str, Any]:
    """Return the `spec` of the autoscaler of a region with so many `shards`, its largest width.

    `region`: apiVersion, kind and name of what it scales.
    """
    least, most = settings.smallest_width(shards), settings.largest_width(shards)
    if settings.mode == "advise":
        # Its controller brings a width to within the limits whatever the behavior says.
        least, most = min(least, 1), shards
    return {
        "scaleTargetRef": region,
        "minReplicas": least,
        "maxReplicas": most,
        "metrics": _metrics(settings, region),
        "behavior": _behavior(settings),
    }


def _metrics(settings: Autoscaling, region: Mapping[str, str]) -> list[dict[str, Any]]:
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
    tolerance = {"tolerance": "0"} if settings.metric == "demand" else {}

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
