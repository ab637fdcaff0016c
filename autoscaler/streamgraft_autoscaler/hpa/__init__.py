"""The HPA controller of Kubernetes 1.36 as a pure library, so that a policy can be tried."""

from streamgraft_autoscaler.hpa.controller import Decision, HorizontalPodAutoscaler
from streamgraft_autoscaler.hpa.replicas import PodUsage, Reading, Scale
from streamgraft_autoscaler.hpa.spec import DEFAULT_SYNC_SECONDS, Spec, SpecError, spec_of

__all__ = [
    "DEFAULT_SYNC_SECONDS",
    "Decision",
    "HorizontalPodAutoscaler",
    "PodUsage",
    "Reading",
    "Scale",
    "Spec",
    "SpecError",
    "spec_of",
]
