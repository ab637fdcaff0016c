"""Signals and policies: a pure library that knows neither Kubernetes nor Prometheus.

Numbers in, a result out, or NotReadyError with the reason. Every result carries its inputs, so
that a width can be explained afterwards.
"""

from streamgraft_autoscaler.capacity import Capacity, CapacityLearner, CapacitySample, Window
from streamgraft_autoscaler.demand import FIRST_STAGE, Demand, demand
from streamgraft_autoscaler.expected import ExpectedDemand, expected_demand
from streamgraft_autoscaler.lag import (
    GatedLagChange,
    RelativeLagChange,
    TopicLag,
    TotalLag,
    gated_lag_change,
    relative_lag_change,
    total_lag,
)
from streamgraft_autoscaler.readiness import NotReady, NotReadyError, Reason, outcome
from streamgraft_autoscaler.stage import DemandPolicy, StageLoad, Surroundings
from streamgraft_autoscaler.utilization import StageIdleness, Utilization, utilization

__all__ = [
    "FIRST_STAGE",
    "Capacity",
    "CapacityLearner",
    "CapacitySample",
    "Demand",
    "DemandPolicy",
    "ExpectedDemand",
    "GatedLagChange",
    "NotReady",
    "NotReadyError",
    "Reason",
    "RelativeLagChange",
    "StageIdleness",
    "StageLoad",
    "Surroundings",
    "TopicLag",
    "TotalLag",
    "Utilization",
    "Window",
    "demand",
    "expected_demand",
    "gated_lag_change",
    "outcome",
    "relative_lag_change",
    "total_lag",
    "utilization",
]
