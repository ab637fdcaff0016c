"""What a HorizontalPodAutoscaler (autoscaling/v2) asks for, with the API server's defaults."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Source = Literal["Object", "External", "Pods", "Resource"]
Target = Literal["Value", "AverageValue", "Utilization"]
Select = Literal["Max", "Min", "Disabled"]

DEFAULT_TOLERANCE = 0.1
"""kube-controller-manager's --horizontal-pod-autoscaler-tolerance."""
DEFAULT_SCALE_DOWN_SECONDS = 300
"""kube-controller-manager's --horizontal-pod-autoscaler-downscale-stabilization."""
DEFAULT_SYNC_SECONDS = 15
"""kube-controller-manager's --horizontal-pod-autoscaler-sync-period."""

_SUFFIXES = {
    **{suffix: 1000.0**power for power, suffix in enumerate(["", "k", "M", "G", "T", "P", "E"])},
    **{f"{suffix}i": 1024.0**power for power, suffix in enumerate("KMGTPE", 1)},
    "m": 1e-3,
    "u": 1e-6,
    "n": 1e-9,
}
_QUANTITY = re.compile(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([a-zA-Z]*)")


class SpecError(ValueError):
    """The manifest is no HPA that can be followed; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class ScalingPolicy:
    """At most `value` pods, or percent of the pods, in `period_seconds`."""

    type: Literal["Pods", "Percent"]
    value: int
    period_seconds: int


@dataclass(frozen=True, slots=True)
class Rules:
    """One direction of `behavior`."""

    stabilization_seconds: int
    policies: tuple[ScalingPolicy, ...]
    select: Select
    tolerance: float


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric and its target: in thousandths, or in percent of the requests."""

    name: str
    source: Source
    target: Target
    target_value: int


@dataclass(frozen=True, slots=True)
class Spec:
    """The spec of an HPA."""

    min_replicas: int
    max_replicas: int
    metrics: tuple[Metric, ...]
    scale_up: Rules
    scale_down: Rules
    behaved: bool
    """Whether the manifest has a `behavior`; without one, other rules apply to growing."""


def spec_of(manifest: Mapping[str, Any]) -> Spec:
    """Return the spec of an HPA object. Raises SpecError."""
    try:
        spec = manifest["spec"]
        behavior = spec.get("behavior")
        up, down = ((behavior or {}).get(name) or {} for name in ("scaleUp", "scaleDown"))
        least = _whole("minReplicas", spec.get("minReplicas", 1), 0)
        return Spec(
            min_replicas=least,
            max_replicas=_whole("maxReplicas", spec["maxReplicas"], max(least, 1)),
            metrics=tuple(_metric(item) for item in spec["metrics"]),
            scale_up=_rules(up, 0, [("Pods", 4), ("Percent", 100)]),
            scale_down=_rules(down, DEFAULT_SCALE_DOWN_SECONDS, [("Percent", 100)]),
            behaved=behavior is not None,
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise SpecError(f"not a HorizontalPodAutoscaler of autoscaling/v2: {error!r}") from error


def milli(quantity: str) -> int:
    """Return a Kubernetes quantity in thousandths, rounded up. Raises SpecError."""
    match = _QUANTITY.fullmatch(quantity)
    try:
        if match is None:
            raise ValueError
        # Decimal fractions like 0.8 are not exact: what is off by less than rounding is exact.
        return math.ceil(round(float(match[1]) * _SUFFIXES[match[2]] * 1000, 6))
    except (KeyError, ValueError, OverflowError):
        raise SpecError(f"{quantity!r} is no quantity") from None


def _whole(name: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise SpecError(f"{name} must be a whole number, {least} or more, not {value!r}")
    return value


def _target(name: str, value: object) -> int:
    """Return a target's quantity in thousandths; as for the API server, it must be above 0."""
    found = milli(str(value))
    if found <= 0:
        raise SpecError(f"the {name} of a target must be above 0, not {value!r}")
    return found


def _rules(rules: Mapping[str, Any], stabilization: int, policies: list[tuple[Any, int]]) -> Rules:
    given = [
        ScalingPolicy(
            policy["type"],
            _whole("the value of a policy", policy["value"], 1),
            _whole("periodSeconds", policy["periodSeconds"], 1),
        )
        for policy in rules.get("policies") or []
    ]
    return Rules(
        stabilization_seconds=_whole(
            "stabilizationWindowSeconds", rules.get("stabilizationWindowSeconds", stabilization), 0
        ),
        policies=tuple(given or [ScalingPolicy(type, value, 15) for type, value in policies]),
        select=rules.get("selectPolicy", "Max"),
        tolerance=milli(str(rules["tolerance"])) / 1000
        if "tolerance" in rules
        else DEFAULT_TOLERANCE,
    )


def _metric(item: Mapping[str, Any]) -> Metric:
    source: Source = item["type"]
    if source not in ("Object", "External", "Pods", "Resource"):
        raise SpecError(f"metrics of type {source} are not followed")
    body = item[source.lower()]
    name = body["name"] if source == "Resource" else body["metric"]["name"]
    target = body["target"]
    if "averageUtilization" in target:
        percent = _whole("averageUtilization", target["averageUtilization"], 1)
        return Metric(name, source, "Utilization", percent)
    if "averageValue" in target:
        value = _target("averageValue", target["averageValue"])
        return Metric(name, source, "AverageValue", value)
    return Metric(name, source, "Value", _target("value", target["value"]))
