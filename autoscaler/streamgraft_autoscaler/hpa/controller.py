"""One HPA, reconciled: `reconcileAutoscaler` of Kubernetes 1.36, without the cluster.

The clock and the readings are given, so a recorded day is replayed in a second. Left out: what is
no arithmetic (statuses, Events, conflicts), and metrics of single containers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from streamgraft_autoscaler.hpa.behavior import Memory
from streamgraft_autoscaler.hpa.replicas import Reading, Scale, proposal
from streamgraft_autoscaler.hpa.spec import Spec
from streamgraft_autoscaler.readiness import NotReady, Reason, outcome


@dataclass(frozen=True, slots=True)
class Decision:
    """The result of one look of the HPA."""

    replicas: int
    """Wanted from now on."""
    proposals: Mapping[str, int | NotReady]
    """What each metric asked for, by name."""
    desired: int | None
    """The largest proposal; None if the metrics were not or could not be used."""
    stabilized: int | None
    """`desired` after the stabilization windows."""
    limit: str
    """The reason of the condition ScalingLimited, or empty."""
    message: str
    """The HPA's reason for a rescale, or why there is none."""


class HorizontalPodAutoscaler:
    """The controller's part of one HPA; `scale_to_zero`: the feature gate HPAScaleToZero."""

    def __init__(self, spec: Spec, *, scale_to_zero: bool = False) -> None:
        self._spec = spec
        self._scale_to_zero = scale_to_zero
        self._scaled_to_zero = False
        self._memory = Memory(spec)

    def reconcile(self, now: float, scale: Scale, readings: Mapping[str, Reading]) -> Decision:
        """Return the decision at the Unix time `now`; a metric without a reading is missing."""
        spec = self._spec
        self._memory.begin(now, scale.spec)
        if scale.spec == 0 and not self._may_leave_zero():
            return Decision(0, {}, None, None, "", "scaling is disabled since there are 0 replicas")
        if scale.spec > spec.max_replicas:
            message = "Current number of replicas above Spec.MaxReplicas"
            return self._rescaled(
                now, scale, Decision(spec.max_replicas, {}, None, None, "", message)
            )
        if 0 < scale.spec < spec.min_replicas:
            message = "Current number of replicas below Spec.MinReplicas"
            return self._rescaled(
                now, scale, Decision(spec.min_replicas, {}, None, None, "", message)
            )
        return self._rescaled(now, scale, self._by_metrics(now, scale, readings))

    def _may_leave_zero(self) -> bool:
        return self._scaled_to_zero and (self._spec.min_replicas != 0 or self._has_outside_metric())

    def _has_outside_metric(self) -> bool:
        return any(metric.source in ("Object", "External") for metric in self._spec.metrics)

    def _by_metrics(self, now: float, scale: Scale, readings: Mapping[str, Reading]) -> Decision:
        proposals: dict[str, int | NotReady] = {}
        for metric in self._spec.metrics:
            reading = readings.get(metric.name, _MISSING)
            proposals[metric.name] = outcome(partial(proposal, metric, reading, scale, self._spec))
        valid = {name: value for name, value in proposals.items() if isinstance(value, int)}
        invalid = [value for value in proposals.values() if isinstance(value, NotReady)]
        # The first of equal proposals names the reason. Negative ones take no part.
        desired = max([0, *valid.values()])
        if invalid and (not valid or desired < scale.spec):
            message = f"{len(invalid)} of {len(proposals)} metrics have no value, the first says: "
            message += f"{invalid[0].reason.value}: {invalid[0].message}"
            return Decision(scale.spec, proposals, None, None, "", message)
        made = self._memory.normalize(now, scale.spec, desired)
        replicas = max(made.replicas, self._spec.min_replicas) if scale.spec == 0 else made.replicas
        message = _message(scale.spec, desired, made.stabilized, replicas, valid)
        return Decision(replicas, proposals, desired, made.stabilized, made.limit, message)

    def _rescaled(self, now: float, scale: Scale, decision: Decision) -> Decision:
        if decision.replicas != scale.spec:
            self._memory.rescaled(now, decision.replicas - scale.spec)
            to_zero = self._scale_to_zero and self._spec.min_replicas == 0
            self._scaled_to_zero = to_zero and decision.replicas == 0 and self._has_outside_metric()
        return decision


_MISSING = NotReady(Reason.NO_DATA, "no reading")


def _message(
    current: int, desired: int, stabilized: int, replicas: int, valid: Mapping[str, int]
) -> str:
    if replicas > current:
        name = next(name for name, value in valid.items() if value == desired)
        return f"{name} above target"
    if replicas < current:
        return "All metrics below target"
    if stabilized != desired and desired > current:
        return f"{desired} wanted, but recent recommendations were lower"
    if stabilized != desired and desired < current:
        return f"{desired} wanted, but recent recommendations were higher"
    if desired != current:
        return f"{desired} wanted, but limits keep {current}"
    return "the metrics ask for the replicas that are there, or are within the tolerance"
