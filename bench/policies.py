"""Scaling policies on real loads: `make bench-policies`.

Each policy drives the same simulated region through the HPA's own algorithm; see
docs/autoscaling.md for what is simulated, and docs/policies/ for the plots it draws.
"""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from bench import traces
from streamgraft_autoscaler import DemandPolicy
from streamgraft_autoscaler.hpa import spec_of
from streamgraft_autoscaler.pause import ExpectedPause
from streamgraft_autoscaler.replay import Experiment, RegionModel, Replay, Trace, replay

ROOT = Path(__file__).resolve().parents[1]
MANIFESTS = ROOT / "deploy" / "hpa"
SHARDS = 24
TARGET = 0.8
OBJECTIVE_SECONDS = 60.0
HEADROOM = 0.5
MODEL = RegionModel(
    true_rate=traces.PEAK / (12 * TARGET),
    shards=SHARDS,
    loss_per_channel=0.002,
    launch_seconds=30.0,
    pause_seconds=1.0,
)
"""At its peak a load keeps 12 channels busy for 80 % of their time."""
DEMAND = DemandPolicy(
    min_width=1,
    max_width=SHARDS,
    shards=SHARDS,
    target_utilization=TARGET,
    headroom=HEADROOM,
    catch_up_seconds=OBJECTIVE_SECONDS,
    pause=ExpectedPause(MODEL.pause_seconds, MODEL.pause_seconds, 0.0, 1),
)
LAG_PER_CHANNEL = round(10 * MODEL.true_rate)
"""lagThreshold of the KEDA-style policy: what a channel works off in ten seconds."""

Manifest = Mapping[str, Any]


def autoscaler(*metrics: Mapping[str, Any]) -> Manifest:
    """Return an HPA with the defaults of Kubernetes, as KEDA generates it."""
    return {"spec": {"minReplicas": 1, "maxReplicas": SHARDS, "metrics": list(metrics)}}


def shipped(name: str) -> Manifest:
    """Return an HPA of deploy/hpa, for this region."""
    manifest: dict[str, Any] = yaml.safe_load((MANIFESTS / name).read_text())
    found = copy.deepcopy(manifest)
    found["spec"]["maxReplicas"] = SHARDS
    return found


CPU = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}
LAG = {
    "type": "External",
    "external": {
        "metric": {"name": "kafka_lag"},
        "target": {"type": "AverageValue", "averageValue": str(LAG_PER_CHANNEL)},
    },
}
POLICIES: Mapping[str, Manifest] = {
    "paper": shipped("paper-policy.yaml"),
    "cpu": autoscaler(CPU),
    "keda_lag": autoscaler(LAG),
    "demand": shipped("demand.yaml"),
}


def experiment(trace: Trace, manifest: Manifest) -> Experiment:
    """Return an experiment with the benchmark's region."""
    return Experiment(
        trace=trace,
        model=MODEL,
        autoscaler=spec_of(manifest),
        policy=DEMAND,
        objective_seconds=OBJECTIVE_SECONDS,
        lag_threshold=10 * MODEL.true_rate,
        overshoot=1.0,
    )


def tried(trace: Trace, manifest: Manifest) -> Replay:
    """Return what a policy does with a load."""
    trial = experiment(trace, manifest)
    return replay(trial, 1)
