"""`streamgraft replay`: what a policy would do with a load, before it is switched on."""

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from streamgraft._values import refused
from streamgraft.cli import _output as output
from streamgraft.cli._output import CommandError
from streamgraft.cli._progress import display
from streamgraft_autoscaler import DemandPolicy
from streamgraft_autoscaler.hpa import Spec, SpecError, spec_of
from streamgraft_autoscaler.pause import ExpectedPause
from streamgraft_autoscaler.plot import Line, Panel, svg_plot, text_plot
from streamgraft_autoscaler.pricing import ChangePrice
from streamgraft_autoscaler.replay import (
    Experiment,
    RegionModel,
    Replay,
    Trace,
    TraceError,
    read_csv,
    read_prometheus,
    replay,
)
from streamgraft_common.adl import Autoscaling
from streamgraft_common.autoscaler_spec import autoscaler_spec
from streamgraft_local.progress import reported

_TIMEOUT_SECONDS = 60


@dataclass(frozen=True)
class Request:
    """What the user asked for."""

    load: str
    """A CSV, a saved answer to a range query, or Prometheus' URL."""
    query: str | None
    """PromQL, with a URL."""
    hours: float
    model: RegionModel
    objective_seconds: float
    settings: tuple[str, ...]
    hpa: Path | None
    """Manifest of an HPA; None: the one that a region with the `settings` gets."""
    svg: Path | None


def run(request: Request) -> None:
    """Replay and print what came of it."""
    asked = _autoscaling(request.settings)
    with display() as steps, reported(steps.report, "replay", "a second or two for each day"):
        found = replay(_experiment(request, asked), asked.smallest_width(request.model.shards))
    panels = _panels(found)
    output.say(text_plot(panels))
    output.say("\n".join(_summary(found)))
    output.result(_outcome(found))
    if request.svg:
        request.svg.write_text(svg_plot(panels, [sample.seconds for sample in found.samples]))
        output.say(f"Plot: {request.svg}")


def _experiment(request: Request, asked: Autoscaling) -> Experiment:
    model = request.model
    pause = ExpectedPause(model.pause_seconds, model.pause_seconds, 0.0, 0)
    return Experiment(
        trace=_trace(request),
        model=model,
        autoscaler=_spec(request, asked),
        policy=DemandPolicy(
            min_width=asked.smallest_width(model.shards),
            max_width=asked.largest_width(model.shards),
            shards=model.shards,
            target_utilization=asked.target_utilization,
            headroom=asked.headroom,
            price=ChangePrice.given(asked.change_cost_seconds or 0.0),
            catch_up_seconds=min(
                asked.catch_up_seconds, asked.latency_seconds or asked.catch_up_seconds
            ),
            pause=pause,
        ),
        objective_seconds=request.objective_seconds,
        lag_threshold=asked.lag_threshold,
        overshoot=asked.overshoot,
        forecast=asked.forecast,
        measured_price=asked.change_cost_seconds is None,
    )


def _trace(request: Request) -> Trace:
    try:
        if request.load.startswith(("http://", "https://")):
            return read_prometheus(request.load, _range(request))
        text = _text(Path(request.load))
        if request.load.endswith(".json"):
            return read_prometheus(request.load, json.loads(text))
        return read_csv(request.load, text)
    except (OSError, ValueError) as error:
        raise CommandError(str(error)) from error


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise CommandError(f"{file} is no text in UTF-8: {error.reason}") from error


def _range(request: Request) -> dict[str, Any]:
    """Ask Prometheus for the last hours, in 5,000 points at most."""
    if request.query is None:
        raise TraceError("a --query is needed that gives the region's records per second")
    end = time.time()
    span = request.hours * 3600
    parameters = {
        "query": request.query,
        "start": f"{end - span:.0f}",
        "end": f"{end:.0f}",
        "step": f"{max(15.0, span / 5000):.0f}",
    }
    url = f"{request.load.rstrip('/')}/api/v1/query_range?{urllib.parse.urlencode(parameters)}"
    with urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def _autoscaling(settings: tuple[str, ...]) -> Autoscaling:
    values = dict(item.partition("=")[::2] for item in settings)
    try:
        return Autoscaling.model_validate(values)
    except ValidationError as error:
        problems = "; ".join(": ".join(found) for found in refused(error))
        raise CommandError(f"--set: {problems}") from error


def _spec(request: Request, asked: Autoscaling) -> Spec:
    try:
        if request.hpa:
            return spec_of(yaml.safe_load(_text(request.hpa)))
    except (OSError, yaml.YAMLError, SpecError) as error:
        raise CommandError(f"{request.hpa}: {error}") from error
    return spec_of({"spec": autoscaler_spec(asked, request.model.shards, {})})


def _panels(found: Replay) -> list[Panel]:
    samples = found.samples
    return [
        Panel("Records/s", [Line("arriving", "#1f77b4", [sample.rate for sample in samples])]),
        Panel("Channels", [Line("wanted", "#2ca02c", [float(s.wanted) for s in samples], True)]),
        Panel("Delay, s", [Line("delay", "#d62728", [sample.delay for sample in samples])]),
    ]


def _outcome(found: Replay) -> dict[str, Any]:
    return {
        "hours": found.days * 24,
        "violationRatio": found.violation_ratio,
        "podHours": found.pod_hours,
        "podHoursRatio": found.pod_hours_ratio,
        "staticWidth": found.experiment.static_width,
        "changePrice": {
            "channelSeconds": found.price.hours(max(s.wanted for s in found.samples)) * 3600,
            "reason": found.price.reason,
        },
        "changes": [
            {"seconds": sample.seconds, "width": sample.wanted, "why": sample.why}
            for sample in found.changes
        ],
    }


def _summary(found: Replay) -> list[str]:
    days, static = found.days, found.experiment.static_width
    late = found.violation_ratio
    return [
        f"{days * 24:.1f} h of load, replayed in steps of 15 s on a simulated region",
        f"objective missed  {late:.2%} of the time ({late * days * 1440:.0f} min)",
        f"width changes     {len(found.changes)} ({found.changes_per_day:.1f} a day)",
        f"pod-hours         {found.pod_hours:.1f}, {found.pod_hours_ratio:.0%} of width {static},"
        " which the peak needs",
        f"price of a change  {found.price.reason}",
        *(
            f"  {sample.seconds / 3600:8.2f} h  width {sample.wanted}: {sample.why}"
            for sample in found.changes[:40]
        ),
    ]
