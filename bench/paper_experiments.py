"""The experiments of the autoscaling paper as scenarios: `make bench-paper-experiments`.

Varga, Balassi, Kiss: "Towards autoscaling of Apache Flink jobs". Sections 4.1 and 4.2 describe a
policy, 5.2 to 5.5 what a scaling operation costs; docs/develop/paper-experiments.md tells what of
it is theirs and what is assumed here. Simulated: it takes seconds. Draws docs/policies/paper-*.svg.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from bench import policies, report
from streamgraft_autoscaler import DemandPolicy
from streamgraft_autoscaler.hpa import spec_of
from streamgraft_autoscaler.pause import ExpectedPause
from streamgraft_autoscaler.plot import Line, Panel, svg_plot
from streamgraft_autoscaler.pricing import measured_price
from streamgraft_autoscaler.replay import Experiment, RegionModel, Replay, Trace, replay
from streamgraft_autoscaler.replay.run import STEP_SECONDS

STORAGE_BYTES_PER_SECOND = 105e6
"""Theirs (5.2): at this rate EFS wrote savepoints; here state is read back at it, too."""
STATE_GB = (1, 2, 4, 8)
"""Theirs (5.3)."""
DEPLOYMENT_SECONDS = 120.0
"""Assumed: until Kubernetes has replaced the pods. They call it the larger portion of a downtime
on the scale of a few minutes, with a large variance."""
KEY_GROUPS = 720
"""Theirs (5.5)."""
TRUE_RATE = 1000.0
"""Assumed: records/s of a busy channel."""
LAG_THRESHOLD = 10 * TRUE_RATE
"""Assumed; they give no number."""
OBJECTIVE_SECONDS = 60.0
CATCH_UP_SECONDS = 300.0
COLOURS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728")

IN_PLACE = RegionModel(
    true_rate=TRUE_RATE,
    shards=KEY_GROUPS,
    batch_seconds=0.1,
    batch_cost_seconds=0.0,
    launch_seconds=30.0,
    pause_seconds=1.0,
)
"""A width change as it is here: warm channels take over what moves."""


def restarting(gigabytes: float) -> RegionModel:
    """Return a job that is restarted from a savepoint of so much state, as theirs is."""
    transfer = gigabytes * 1e9 / STORAGE_BYTES_PER_SECOND
    return replace(
        IN_PLACE,
        launch_seconds=transfer,
        pause_seconds=DEPLOYMENT_SECONDS + transfer,
        restarts=True,
    )


def phases(*parts: tuple[float, float]) -> Trace:
    """Return a load of (minutes, records/s), one after the other."""
    rates = [rate for minutes, rate in parts for _ in range(round(minutes * 60 / STEP_SECONDS))]
    return Trace("phases", STEP_SECONDS, tuple(rates))


def tried(
    load: Trace, model: RegionModel, hpa: policies.Manifest, width: int, overshoot: float = 1.0
) -> Replay:
    """Return what an HPA does with a load."""
    pause = ExpectedPause(model.pause_seconds, model.pause_seconds, 0.0, 1)
    policy = DemandPolicy(
        min_width=1,
        max_width=32,
        shards=KEY_GROUPS,
        target_utilization=policies.TARGET,
        headroom=policies.DEFAULTS.headroom,
        price=measured_price((), model.pause_seconds),
        catch_up_seconds=CATCH_UP_SECONDS,
        pause=pause,
    )
    experiment = Experiment(
        trace=load,
        model=model,
        autoscaler=spec_of(hpa),
        policy=policy,
        objective_seconds=OBJECTIVE_SECONDS,
        lag_threshold=LAG_THRESHOLD,
        overshoot=overshoot,
        measured_price=True,
    )
    return replay(experiment, width)


PAPER = policies.autoscaler(*policies.shipped("paper-policy.yaml")["spec"]["metrics"])
"""Their two metrics, with Kubernetes' own behavior: they name no other."""
DEMAND = policies.shipped("demand.yaml")
RULES = phases((20, 1600), (20, 3200), (30, 1600))
"""Their example in 4.2, a utilization of 0.4 at a target of 0.8, then twice the load, and back."""
STEP = phases((20, 1600), (70, 3600))
"""More than twice the load, to stay."""


def widths(found: Replay) -> list[int]:
    """Return the wanted widths, one after the other."""
    wanted = [sample.wanted for sample in found.samples]
    return [wanted[0], *(after for before, after in pairwise(wanted) if after != before)]


def late_seconds(found: Replay) -> float:
    """Return for how long records waited longer than the objective."""
    return found.violation_ratio * len(found.samples) * STEP_SECONDS


def figures(name: str, found: Replay) -> dict[str, float]:
    """Return what a scenario came to."""
    return {
        f"{name}.longest_delay_s": round(max(sample.delay for sample in found.samples), 1),
        f"{name}.late_s": late_seconds(found),
        f"{name}.changes": len(found.changes),
        f"{name}.last_width": found.samples[-1].wanted,
        f"{name}.pod_hours": round(found.pod_hours, 2),
    }


def draw(name: str, found: Mapping[str, Replay], *quantities: str) -> None:
    """Draw the load, and of all scenarios in one panel each: `lag`, `delay` or `wanted`."""
    samples = next(iter(found.values())).samples
    panels = [Panel("Records/s", [Line("load", COLOURS[0], [item.rate for item in samples])])]
    titles = {"lag": "Records waiting", "delay": "Seconds that a record waits", "wanted": "Width"}
    for quantity in quantities:
        lines = [
            Line(label, colour, _values(result, quantity), steps=quantity == "wanted")
            for (label, result), colour in zip(found.items(), COLOURS, strict=False)
        ]
        panels.append(Panel(titles[quantity], lines))
    start = samples[0].seconds
    picture = svg_plot(panels, [sample.seconds - start for sample in samples])
    (policies.PLOTS / f"paper-{name}.svg").write_text(picture)


def _values(found: Replay, quantity: str) -> Sequence[float | None]:
    return [float(getattr(sample, quantity)) for sample in found.samples]


def all_figures(scenarios: Iterable[tuple[str, Mapping[str, Replay]]]) -> dict[str, float]:
    """Return the figures of all scenarios."""
    return {
        figure: value
        for group, found in scenarios
        for label, result in found.items()
        for figure, value in figures(f"{group}.{label.replace(' ', '_')}", result).items()
    }


def main() -> None:
    """Run all scenarios; write figures and plots."""
    rules = {"paper": tried(RULES, IN_PLACE, PAPER, 4), "demand": tried(RULES, IN_PLACE, DEMAND, 4)}
    overshoot = {
        f"overshoot {factor:g}": tried(STEP, IN_PLACE, PAPER, 2, factor)
        for factor in (1.0, 1.25, 1.5)
    }
    downtime = {f"{size} GB": tried(STEP, restarting(size), PAPER, 2) for size in STATE_GB}
    ours = {
        "paper": downtime["8 GB"],
        "demand": tried(STEP, restarting(8), DEMAND, 2),
        "demand in place": tried(STEP, IN_PLACE, DEMAND, 2),
    }
    draw("rules", rules, "lag", "wanted")
    draw("overshoot", overshoot, "lag", "wanted")
    draw("downtime", downtime, "delay", "wanted")
    draw("demand", ours, "delay", "wanted")
    scenarios = (("rules", rules), ("overshoot", overshoot), ("downtime", downtime), ("step", ours))
    settings = {
        "storage_bytes_per_s": STORAGE_BYTES_PER_SECOND,
        "deployment_s": DEPLOYMENT_SECONDS,
        "key_groups": KEY_GROUPS,
        "true_rate": TRUE_RATE,
        "lag_threshold": LAG_THRESHOLD,
        "catch_up_s": CATCH_UP_SECONDS,
        "objective_s": OBJECTIVE_SECONDS,
    }
    report.write("paper-experiments", settings, all_figures(scenarios))
    for group, found in scenarios:
        for label, result in found.items():
            print(f"{group}, {label}: widths {' '.join(map(str, widths(result)))}")


if __name__ == "__main__":
    main()
