"""Job life cycle times against the number of PEs: figure 7 of cloud native Streams (section 8.1).

`make bench-lifecycle`: submission, full health and termination of n-way regions of n-operator
pipelines, up to 1,027 PEs, with hollow PEs (`hollow_node`); the raw limit measured in the same call
(`raw_limit`); what the operator needs; how one replica follows another (`lifecycle_handover`); and
what one width change of a wide region writes. Figure 9 as well: how long it takes to double and to
halve a width; and figure 10: how long until a job whose pod fails is whole again
(`lifecycle_failures`). SIZES, CHANNELS and WIDEST in the environment make it smaller:
`SIZES="4 8" CHANNELS=16 WIDEST=8 make bench-lifecycle`. Draws docs/images/lifecycle-*.svg.
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import report
from bench.cluster import running_cluster
from bench.lifecycle_run import OPERATOR_IDLE_SECONDS as IDLE
from bench.lifecycle_run import LifeCycle, Run, WidthChange
from bench.size_plot import size_plot
from streamgraft_common.kube import KubeClient, load_config
from streamgraft_local import Cluster

SIZES = tuple(int(size) for size in os.environ.get("SIZES", "4 8 16 32").split())
"""n: each run has n x n + 3 PEs."""
CHANNELS = int(os.environ.get("CHANNELS", "256"))
"""Width of the region whose change is counted."""
WIDEST = int(os.environ.get("WIDEST", "128"))
"""What the width is doubled to from one channel on; a power of two."""
PLOTS = Path(__file__).parents[1] / "docs" / "images"

console = Console()


@asynccontextmanager
async def hollow(cluster: Cluster) -> AsyncIterator[None]:
    """Put a hollow node in the place of the process node; nobody scrapes the PEs."""
    for component in ("node", "adapter", "prometheus"):
        await asyncio.to_thread(cluster.stop, component)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.hollow_node", str(cluster.kubeconfig)
    )
    try:
        yield
    finally:
        process.terminate()
        await process.wait()


def show(runs: list[Run]) -> None:
    """Print one line per size."""
    table = Table(title="job life cycle, seconds (raw limit in brackets)", title_justify="left")
    for column in ("PEs", "objects", "submitted", "healthy", "recovered", "terminated"):
        table.add_column(column, justify="right")
    for run in runs:
        table.add_row(
            f"{run.pes}",
            f"{run.limit.objects}",
            f"{run.submitted_s:.2f} ({run.limit.create_s:.2f})",
            f"{run.healthy_s:.2f} ({run.limit.create_s + run.limit.create_pods_s:.2f})",
            f"{report.percentile(run.recovered_s, 0.5):.2f}, {max(run.recovered_s):.2f} at most",
            f"{run.terminated_s:.2f} ({run.limit.delete_s:.2f})",
        )
    console.print(table)


def show_change(change: WidthChange) -> None:
    """Print what a width change wrote."""
    console.print(
        f"width {change.from_width} to {change.to_width}: {sum(change.writes.values())} API writes"
        f" of the operator; {change.touched} objects touched, pods included"
    )
    for what, count in sorted(change.writes.items()):
        console.print(f"  {what}: {count}")


def draw(runs: list[Run], doublings: list[WidthChange]) -> None:
    """Write the pictures of figures 7, 9 and 10."""
    lines = {
        "submitted": [(run.pes, run.submitted_s) for run in runs],
        "full health": [(run.pes, run.healthy_s) for run in runs],
        "terminated": [(run.pes, run.terminated_s) for run in runs],
    }
    picture = size_plot("Life cycle of a job", "seconds", lines, "number of PEs", "{:g}".format)
    (PLOTS / "lifecycle-job.svg").write_text(picture)
    lines = {
        name: [(it.from_width, it.served_s) for it in doublings if it.widens() == widens]
        for name, widens in (("doubled", True), ("halved", False))
    }
    title = "Width of a region doubled and halved"
    picture = size_plot(title, "seconds", lines, "width before", "{:g}".format)
    (PLOTS / "lifecycle-width.svg").write_text(picture)
    lines = {
        "slowest": [(run.pes, max(run.recovered_s)) for run in runs],
        "median": [(run.pes, report.percentile(run.recovered_s, 0.5)) for run in runs],
        "fastest": [(run.pes, min(run.recovered_s)) for run in runs],
    }
    title = "A pod fails until its job is at full health again (control plane)"
    picture = size_plot(title, "seconds", lines, "number of PEs", "{:g}".format)
    (PLOTS / "lifecycle-failures.svg").write_text(picture)


def of_run(run: Run) -> dict[str, float]:
    """Return the figures of one run by name."""
    return {
        "submit_s": run.submitted_s,
        "submit_raw_s": run.limit.create_s,
        "submit_ratio": run.submitted_s / run.limit.create_s,
        "healthy_s": run.healthy_s,
        "recovery_s_p50": report.percentile(run.recovered_s, 0.5),
        "recovery_s_max": max(run.recovered_s),
        "terminate_s": run.terminated_s,
        "terminate_raw_s": run.limit.delete_s,
        "terminate_ratio": run.terminated_s / run.limit.delete_s,
        "api_writes": float(sum(run.writes.values())),
    }


def figures(
    runs: list[Run], changes: list[WidthChange], doublings: list[WidthChange]
) -> dict[str, float]:
    """Return the figures by name, those of a run with the number of its PEs; what the operator
    needs was measured with the largest."""
    last = runs[-1]
    found = {
        "operator_rss_mb": last.operator.peak_rss_mb,
        "operator_idle_cpu_percent": last.operator.idle_cpu_percent,
    }
    for run in runs:
        found |= {f"{name}_{run.pes}": value for name, value in of_run(run).items()}
    if last.hand_over:
        found[f"hand_over_leading_s_{last.pes}"] = last.hand_over.leading_s
        found[f"hand_over_acting_s_{last.pes}"] = last.hand_over.acting_s
    for what in ("submitted", "healthy", "terminated"):
        slope = report.slope([(run.pes, getattr(run, f"{what}_s")) for run in runs])
        found[f"{what}_ms_per_pe"] = slope * 1000
    for change in changes:
        found[f"width_{change.from_width}_to_{change.to_width}_writes"] = float(
            sum(change.writes.values())
        )
        found[f"width_{change.from_width}_to_{change.to_width}_touched"] = float(change.touched)
    for change in doublings:
        what = "doubled" if change.widens() else "halved"
        found[f"{what}_s_{change.from_width}"] = change.served_s
    return {name: round(value, 3) for name, value in found.items()}


async def main() -> None:
    """Run all sizes on one fresh embedded environment."""
    with tempfile.TemporaryDirectory(prefix="streamgraft-bench-") as folder:
        async with (
            running_cluster(Path(folder)) as cluster,
            hollow(cluster),
            KubeClient(load_config(cluster.kubeconfig)) as client,
        ):
            cycle = LifeCycle(cluster, client, Path(folder))
            await cycle.ready()
            runs = []
            for size in SIZES:
                runs.append(await cycle.run(size, rest=size == SIZES[-1]))
                show(runs[-1:])
            changes = await cycle.width_changes(CHANNELS)
            doublings = await cycle.doublings(WIDEST)
    show(runs)
    for change in changes:
        show_change(change)
    draw(runs, doublings)
    sizes = {"sizes": list(SIZES), "channels": CHANNELS, "widest": WIDEST}
    found = figures(runs, changes, doublings)
    report.write("lifecycle", {**sizes, "idle_seconds": IDLE}, found)


if __name__ == "__main__":
    asyncio.run(main())
