"""Consistent regions: recovery from killed PEs, and what cuts cost: `make bench-consistent`.

Figure 11 of "Cloud native IBM Streams" (000): how long a region that goes back to its last cut
takes until it flows again, by the number of its PEs, and beyond that by the size of its state and
with a warm pool. Then the cost of cuts, in throughput and latency, by the time between them. All
on the embedded environment; everything is real. CASES picks some, e.g. `CASES="pes.4 none 10s"`:
those of the others stay. Writes `bench/results/consistent.json`, and `docs/images/consistent-*.svg`
once there are figures of all cases.
"""

import asyncio
import os
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench import cut_costs, region_kills, report
from bench.cluster import running_cluster
from bench.cut_costs import costs
from bench.region_kills import KillCase, kills
from bench.size_plot import size_plot
from streamgraft_local import Cluster

FEW_KEYS, MANY_KEYS = 1_000, 200_000
KILL_CASES = {
    "pes.2": KillCase(pes=2, keys=FEW_KEYS),
    "pes.4": KillCase(pes=4, keys=FEW_KEYS),
    "pes.6": KillCase(pes=6, keys=FEW_KEYS),
    f"keys.{MANY_KEYS}": KillCase(pes=4, keys=MANY_KEYS),
    "warm": KillCase(pes=4, keys=FEW_KEYS, warm_pool=1),
}
SAME_CASE = {f"keys.{FEW_KEYS}": "pes.4"}
"""Figures that a case has under another name as well."""
NO_CUTS = "none"
PERIODS = {NO_CUTS: 0.0, "1s": 1.0, "10s": 10.0, "60s": 60.0}
CASES = (*KILL_CASES, *PERIODS)
UNUSED = ("prometheus", "adapter")
PLOTS = Path(__file__).parents[1] / "docs" / "images"

Figures = Mapping[str, float]


OF_TORTURE = ("torture_runs", "torture_wrong")
"""Figures that `make torture-consistent` notes."""


def of_case(measured: Figures, case: str) -> dict[str, float]:
    """Return the figures that a case was measured by."""
    names = re.compile(rf"(recovery_s\.{re.escape(case)}\.\d+|[a-z]\w*\.{re.escape(case)})")
    derived = re.compile(r"recovery_s_.*|overhead_.*")
    return {
        name: value
        for name, value in measured.items()
        if names.fullmatch(name) and not derived.fullmatch(name)
    }


def seconds_of(measured: Figures, case: str) -> list[float]:
    """Return how long the region took after each kill of a case."""
    return [value for name, value in of_case(measured, case).items() if name.startswith("recovery")]


def derived(measured: Figures) -> dict[str, float]:
    """Return what follows from the figures of the cases.

    What has no case is over all but the one with a pool.
    """
    seconds = {case: seconds_of(measured, case) for case in KILL_CASES}
    cold = [case for case, item in KILL_CASES.items() if not item.warm_pool]
    named = {"": [value for case in cold for value in seconds[case]]}
    named |= {f".{case}": values for case, values in seconds.items()}
    named |= {f".{name}": seconds[case] for name, case in SAME_CASE.items()}
    found: dict[str, float] = {}
    for suffix, values in named.items():
        if values:
            found[f"recovery_s_p50{suffix}"] = report.percentile(values, 0.5)
            found[f"recovery_s_max{suffix}"] = max(values)
    found["kills"] = sum(map(len, seconds.values()))
    without = measured.get(f"records_per_s.{NO_CUTS}")
    for case in PERIODS:
        rate = measured.get(f"records_per_s.{case}")
        if rate is not None and without is not None and case != NO_CUTS:
            found[f"overhead_percent_{case}"] = round(100 * (1 - rate / without), 1)
    for name in ("rollbacks", "lost", "duplicated"):
        found[name] = sum(measured.get(f"{name}.{case}", 0) for case in CASES)
    return found


def write(measured: dict[str, float], ran: Sequence[str]) -> None:
    """Write the figures of the cases that ran, beside those of others from before."""
    before = report.read("consistent").get("figures", {})
    kept = {case: {} if case in ran else of_case(before, case) for case in CASES}
    every = {name: value for found in kept.values() for name, value in found.items()} | measured
    every |= {name: before[name] for name in OF_TORTURE if name in before}
    cases = [case for case in CASES if of_case(every, case)]
    settings = {
        "cases": cases,
        "rate": region_kills.RATE,
        "rate_of_costs": cut_costs.RATE,
        "period_seconds": region_kills.PERIOD_SECONDS,
        "kills_per_case": region_kills.KILLS,
        "saturated_seconds": {
            case: cut_costs.saturated_seconds(period) for case, period in PERIODS.items()
        },
        "trigger_seconds": 0.5,
        "cores": os.cpu_count(),
    }
    report.write("consistent", settings, derived(every) | every)
    if len(cases) == len(CASES):
        draw_recovery(every)
        draw_latency(every)


def draw_recovery(measured: Figures) -> None:
    """Write the picture of the recoveries by the number of PEs: figure 11."""
    pes = {item.pes: case for case, item in KILL_CASES.items() if case.startswith("pes.")}
    seconds = {number: seconds_of(measured, case) for number, case in pes.items()}
    lines = {
        "slowest": [(number, max(values)) for number, values in seconds.items()],
        "median": [(number, report.percentile(values, 0.5)) for number, values in seconds.items()],
        "fastest": [(number, min(values)) for number, values in seconds.items()],
    }
    title, over = "Consistent region: PE killed until it flows again", "number of PEs in the region"
    picture = size_plot(title, "seconds", lines, over, lambda number: f"{number:g}")
    (PLOTS / "consistent-recovery.svg").write_text(picture)


def draw_latency(measured: Figures) -> None:
    """Write the picture of latencies by the time between cuts."""
    periods = {case: period for case, period in PERIODS.items() if case != NO_CUTS}
    lines = {}
    for name in ("p50", "p99"):
        figure = f"latency_{name}_s"
        lines[name] = [(period, measured[f"{figure}.{case}"]) for case, period in periods.items()]
        least = measured[f"{figure}.{NO_CUTS}"]
        lines[f"{name}, no region"] = [(period, least) for period in periods.values()]
    title, over = "Consistent region: how long records take", "time from cut to cut"
    picture = size_plot(title, "seconds", lines, over, lambda period: f"{period:g} s")
    (PLOTS / "consistent-latency.svg").write_text(picture)


async def measure(cluster: Cluster, folder: Path, case: str) -> dict[str, float]:
    """Run a case on its own; return its figures."""
    job = f"consistent{case.replace('.', '')}"
    if case in PERIODS:
        return (await costs(cluster, folder, job, PERIODS[case])).figures(case)
    return (await kills(cluster, folder, job, KILL_CASES[case])).figures(case)


async def main() -> None:
    """Measure in an environment of its own; write after each case what was found."""
    chosen = sys.argv[1:] or CASES
    measured: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="streamgraft-bench-") as name:
        folder = Path(name)
        async with running_cluster(folder / "cluster") as cluster:
            for part in UNUSED:
                await asyncio.to_thread(cluster.stop, part)
            for case in chosen:
                measured |= await measure(cluster, folder, case)
                write(measured, chosen)


if __name__ == "__main__":
    asyncio.run(main())
