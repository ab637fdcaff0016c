"""From one metric to a number of replicas: `replica_calculator.go` of Kubernetes 1.36."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from streamgraft_autoscaler.hpa.spec import Metric, Spec
from streamgraft_autoscaler.readiness import NotReady, NotReadyError, Reason

_LARGEST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Scale:
    """The scale subresource, and the pods that it selects."""

    spec: int
    """Replicas wanted."""
    status: int
    """Replicas as reported."""
    pods: int
    """Selected pods."""
    ready: int
    """How many of them are ready."""


@dataclass(frozen=True, slots=True)
class PodUsage:
    """What one pod uses and requests, in thousandths. Pods that are being deleted are left out.

    missing: it has no sample; unready: pending, or its CPU is not yet what it will be.
    """

    state: Literal["measured", "missing", "unready"]
    usage: int = 0
    request: int = 0


Reading = float | Sequence[PodUsage] | NotReady
"""A metric as the HPA reads it: of an object or of the outside, or of each pod."""


def proposal(metric: Metric, reading: Reading, scale: Scale, spec: Spec) -> int:
    """Return the replicas that one metric asks for. NotReadyError if its reading is of no use."""
    if isinstance(reading, NotReady):
        raise NotReadyError(reading.reason, reading.message)
    if isinstance(reading, int | float):
        if not math.isfinite(reading):
            raise NotReadyError(Reason.NOT_A_NUMBER, f"{metric.name} is {reading}")
        usage = math.ceil(round(reading * 1000, 6))
        if metric.target == "AverageValue":
            return _per_pod(usage, metric.target_value, scale, spec)
        return _in_all(usage, metric.target_value, scale, spec)
    return _of_pods(metric, reading, scale, spec)


def _within(ratio: float, spec: Spec) -> bool:
    return 1.0 - spec.scale_down.tolerance <= ratio <= 1.0 + spec.scale_up.tolerance


def _per_pod(usage: int, target: int, scale: Scale, spec: Spec) -> int:
    """GetObjectPerPodMetricReplicas, GetExternalPerPodMetricReplicas."""
    if scale.status and _within(usage / (target * scale.status), spec):
        return scale.status
    return min(math.ceil(usage / target), _LARGEST)


def _in_all(usage: int, target: int, scale: Scale, spec: Spec) -> int:
    """getUsageRatioReplicaCount."""
    ratio = usage / target
    if scale.spec == 0:
        return math.ceil(ratio)
    if _within(ratio, spec):
        return scale.spec
    if scale.pods == 0:
        raise NotReadyError(Reason.NO_DATA, "no pods returned by selector")
    return min(math.ceil(ratio * scale.ready), _LARGEST)


def _of_pods(metric: Metric, pods: Sequence[PodUsage], scale: Scale, spec: Spec) -> int:
    """GetResourceReplicas, calcPlainMetricReplicas: who is silent counts against a change."""
    measured = [pod for pod in pods if pod.state == "measured"]
    if not measured:
        raise NotReadyError(Reason.NO_DATA, "did not receive metrics for targeted pods")
    ratio = _ratio(metric, measured)
    missing = [pod for pod in pods if pod.state == "missing"]
    unready = [pod for pod in pods if pod.state == "unready"] if ratio > 1.0 else []
    if not unready and not missing:
        return scale.spec if _within(ratio, spec) else math.ceil(ratio * len(measured))
    silent = [PodUsage("measured", 0, pod.request) for pod in unready]
    if ratio < 1.0:
        silent += [PodUsage("measured", _full(metric, pod), pod.request) for pod in missing]
    elif ratio > 1.0:
        silent += [PodUsage("measured", 0, pod.request) for pod in missing]
    counted = measured + silent
    again = _ratio(metric, counted)
    turned = (ratio < 1.0 < again) or (ratio > 1.0 > again)
    if _within(again, spec) or turned:
        return scale.spec
    replicas = math.ceil(again * len(counted))
    against = (again < 1.0 and replicas > scale.spec) or (again > 1.0 and replicas < scale.spec)
    return scale.spec if against else replicas


def _ratio(metric: Metric, pods: Sequence[PodUsage]) -> float:
    usage = sum(pod.usage for pod in pods)
    if metric.target == "Utilization":
        return usage * 100 // sum(pod.request for pod in pods) / metric.target_value
    return usage // len(pods) / metric.target_value


def _full(metric: Metric, pod: PodUsage) -> int:
    if metric.target == "Utilization":
        return pod.request * max(100, metric.target_value) // 100
    return metric.target_value
