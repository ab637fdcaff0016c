"""Scaling policies on real loads: `make bench-policies`.

Each policy drives the same simulated region through the HPA's own algorithm; see
docs/use/autoscaling.md for what is simulated, and docs/policies/ for the plots it draws.
"""

import copy
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from bench import oracle, report, traces
from streamgraft_autoscaler import DemandPolicy
from streamgraft_autoscaler.hpa import spec_of
from streamgraft_autoscaler.pause import ExpectedPause
from streamgraft_autoscaler.plot import Line, Panel, svg_plot
from streamgraft_autoscaler.pricing import ChangePrice
from streamgraft_autoscaler.replay import Experiment, RegionModel, Replay, Trace, replay
from streamgraft_common.adl import Autoscaling

ROOT = Path(__file__).resolve().parents[1]
PLOTS = ROOT / "docs" / "policies"
MANIFESTS = ROOT / "deploy" / "hpa"
SHARDS = 60
TARGET = 0.8
OBJECTIVE_SECONDS = 60.0
EACH = 20
"""Of so many looks of the HPA one is drawn: every five minutes."""
LOADS = (traces.flights, traces.bikes, traces.pedestrians)
LEARNING = 2 * 86_400.0 + 3600
"""The forecast needs two days; no policy is judged by them."""
MODEL = RegionModel(
    true_rate=traces.PEAK / (12 * TARGET * 0.978),
    shards=SHARDS,
    loss_per_channel=0.002,
    batch_cost_seconds=0.01,
    launch_seconds=30.0,
    pause_seconds=1.0,
)
"""At its peak a load keeps 12 channels busy for 80 % of their time, 2.2 % slower than one alone."""
DEFAULTS = Autoscaling()
DEAR = ChangePrice.given(2700.0)
"""For whoever wants few changes whatever they cost."""
DEMAND = DemandPolicy(
    min_width=1,
    max_width=SHARDS,
    shards=SHARDS,
    target_utilization=TARGET,
    headroom=DEFAULTS.headroom,
    price=DEAR,
    catch_up_seconds=OBJECTIVE_SECONDS,
    pause=ExpectedPause(MODEL.pause_seconds, MODEL.pause_seconds, 0.0, 1),
)
LAG_THRESHOLD = 10 * MODEL.true_rate
"""Of the paper's policy: what a channel works off in ten seconds."""
LAG_PER_CHANNEL = round(TARGET * MODEL.true_rate * MODEL.batch_seconds)
"""lagThreshold of the KEDA-style policy: what is on its way through a channel at the target
utilization. With a larger one nothing but a backlog holds the width, and it oscillates."""

Manifest = Mapping[str, Any]


def autoscaler(*metrics: Mapping[str, Any]) -> Manifest:
    """Return an HPA with the defaults of Kubernetes, as KEDA generates it."""
    return {"spec": {"minReplicas": 1, "maxReplicas": SHARDS, "metrics": list(metrics)}}


def shipped(name: str, scale_down_seconds: int | None = None) -> Manifest:
    """Return an HPA of deploy/hpa, for this region, perhaps with another stabilization."""
    manifest: dict[str, Any] = yaml.safe_load((MANIFESTS / name).read_text())
    found = copy.deepcopy(manifest)
    found["spec"]["maxReplicas"] = SHARDS
    if scale_down_seconds is not None:
        behavior = found["spec"]["behavior"]["scaleDown"]
        behavior["stabilizationWindowSeconds"] = scale_down_seconds
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


@dataclass(frozen=True)
class Policy:
    """An HPA, and whether the demand looks at the forecast."""

    manifest: Manifest
    forecast: bool = False


POLICIES: Mapping[str, Policy] = {
    "paper": Policy(shipped("paper-policy.yaml", scale_down_seconds=300)),
    "cpu": Policy(autoscaler(CPU)),
    "keda_lag": Policy(autoscaler(LAG)),
    "demand": Policy(shipped("demand.yaml")),
    "demand_forecast": Policy(shipped("demand.yaml"), forecast=True),
}


DEFAULT, PEERS = "demand_forecast", ("paper", "cpu")


def tried(
    trace: Trace, policy: Policy, skip_seconds: float, *, measured_price: bool = True
) -> Replay:
    """Return what a policy does with a load; the beginning is not counted. A change costs what the
    region's own past ones did, or else DEAR."""
    experiment = Experiment(
        trace=trace,
        model=MODEL,
        autoscaler=spec_of(policy.manifest),
        policy=DEMAND,
        objective_seconds=OBJECTIVE_SECONDS,
        lag_threshold=LAG_THRESHOLD,
        skip_seconds=skip_seconds,
        forecast=policy.forecast,
        measured_price=measured_price,
    )
    return replay(experiment, 1)


def figures(trace: str, name: str, found: Replay) -> dict[str, float]:
    """Return the figures of a policy with one load."""
    return {
        f"{name}.{trace}.violation_ratio": round(found.violation_ratio, 5),
        f"{name}.{trace}.violation_minutes_per_day": round(found.violation_ratio * 1440, 2),
        f"{name}.{trace}.changes_per_day": round(found.changes_per_day, 2),
        f"{name}.{trace}.pod_hours_ratio": round(found.pod_hours_ratio, 3),
    }


def bounds(trace: Trace, found: Replay, skip_seconds: float) -> dict[str, float]:
    """Return the least pod-hours of whoever knows the load, with as many changes as were made.

    Once at the target utilization throughout, once as full as demand lets a channel become.
    """
    static = found.experiment.static_width * found.days * 24
    rates = trace.rates[int(skip_seconds / trace.step_seconds) :]
    changes = math.ceil(found.changes_per_day * found.days)
    return {
        f"oracle_{name}.{trace.name}.pod_hours_ratio": round(
            oracle.least_pod_hours(rates, trace.step_seconds, MODEL, share, changes) / static, 3
        )
        for name, share in (("target", TARGET), ("full", DEMAND.target.full))
    }


def worst(measured: Mapping[str, float], name: str) -> dict[str, float]:
    """Return the worst figures of a policy with any of the loads."""
    return {
        f"{name}.{figure}": max(measured[f"{name}.{load.__name__}.{figure}"] for load in LOADS)
        for figure in ("violation_ratio", "changes_per_day", "pod_hours_ratio")
    }


def elsewhere() -> dict[str, float]:
    """Return the worst and the best figures on other days, on which no policy was chosen."""
    found = [window(trace) for trace in traces.windows()]
    return {
        f"{DEFAULT}.windows.{name}{suffix}": extreme(values[name] for values in found)
        for suffix, extreme in (("", max), ("_least", min))
        for name in found[0]
    }


def window(trace: Trace) -> dict[str, float]:
    """Return how the default policy does beside others, and beside whoever knows the load."""
    found = {name: tried(trace, POLICIES[name], LEARNING) for name in (DEFAULT, *PEERS)}
    ours, peers = found[DEFAULT], [found[name] for name in PEERS]
    least = bounds(trace, ours, LEARNING)[f"oracle_target.{trace.name}.pod_hours_ratio"]
    values = {
        "violation_ratio": ours.violation_ratio,
        "over_oracle_target": ours.pod_hours_ratio - least,
        **{f"over_{name}": ours.pod_hours_ratio - found[name].pod_hours_ratio for name in PEERS},
        "changes_to_peers": max(ours.changes_per_day / peer.changes_per_day for peer in peers),
    }
    return {name: round(value, 4) for name, value in values.items()}


def picture(trace: Trace, found: Mapping[str, Replay]) -> str:
    """Return the load and the widths of all policies as SVG."""
    samples = next(iter(found.values())).samples[::EACH]
    start = samples[0].seconds
    load = Panel("Records/s", [Line("load", "#1f77b4", [sample.rate for sample in samples])])
    widths = [
        Panel(f"Channels: {name}", [Line("wanted", "#2ca02c", _widths(result))])
        for name, result in found.items()
    ]
    return svg_plot([load, *widths], [sample.seconds - start for sample in samples])


def _widths(found: Replay) -> list[float | None]:
    return [float(sample.wanted) for sample in found.samples[::EACH]]


def main() -> None:
    """Run all policies on all loads; write the figures and the plots."""
    measured: dict[str, float] = {}
    PLOTS.mkdir(exist_ok=True)
    for load in LOADS:
        trace = load()
        found = {name: tried(trace, policy, LEARNING) for name, policy in POLICIES.items()}
        for name, result in found.items():
            measured |= figures(trace.name, name, result)
        measured |= bounds(trace, found[DEFAULT], LEARNING)
        price = round(found[DEFAULT].price.channel_seconds, 1)
        measured[f"{DEFAULT}.{trace.name}.price_channel_seconds"] = price
        dear = tried(trace, POLICIES[DEFAULT], LEARNING, measured_price=False)
        measured |= figures(trace.name, "dear", dear)
        (PLOTS / f"{trace.name}.svg").write_text(picture(trace, found))
    trace, hour = traces.steps(), 3600.0 * traces.STEP_HOURS
    found = {name: tried(trace, policy, hour / 2) for name, policy in POLICIES.items()}
    (PLOTS / "steps.svg").write_text(picture(trace, found))
    for name, result in found.items():
        up, down = result.steps_between(hour, 2 * hour), result.steps_between(2 * hour, 3 * hour)
        measured |= {f"{name}.steps_up": up, f"{name}.steps_down": down}
        measured |= {f"{name}.steps_max": max(up, down), **worst(measured, name)}
    measured |= worst(measured, "dear") | elsewhere()
    settings = {
        **asdict(MODEL),
        "objective_seconds": OBJECTIVE_SECONDS,
        "headroom": DEMAND.headroom,
        "dear_change_cost_seconds": DEAR.per_channel_of_peak,
    }
    report.write("policies", settings, measured)


if __name__ == "__main__":
    main()
