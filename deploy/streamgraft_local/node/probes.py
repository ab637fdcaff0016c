"""Probes as a pure state machine: results in, verdicts out."""

from dataclasses import dataclass, replace
from typing import Any, Self


@dataclass(frozen=True)
class ProbeTiming:
    """When to probe, in seconds, and how many equal results in a row change the verdict."""

    initial_delay: float
    period: float
    timeout: float
    success_threshold: int
    failure_threshold: int

    @classmethod
    def of(cls, probe: dict[str, Any]) -> Self:
        """Return the timing of a probe, with Kubernetes' defaults."""
        return cls(
            initial_delay=probe.get("initialDelaySeconds", 0),
            period=probe.get("periodSeconds", 10),
            timeout=probe.get("timeoutSeconds", 1),
            success_threshold=probe.get("successThreshold", 1),
            failure_threshold=probe.get("failureThreshold", 3),
        )


@dataclass(frozen=True)
class ProbeState:
    """Where a probe stands."""

    healthy: bool | None = None
    """None until a threshold was reached for the first time."""
    streak: int = 0
    """Equal results in a row."""
    last: bool | None = None

    def after(self, success: bool, timing: ProbeTiming) -> Self:
        """Return the state after one more result."""
        streak = self.streak + 1 if success == self.last else 1
        needed = timing.success_threshold if success else timing.failure_threshold
        healthy = success if streak >= needed else self.healthy
        return replace(self, healthy=healthy, streak=streak, last=success)
