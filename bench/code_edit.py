"""Code edits of a running job: how long a key group has no output while its driver swaps code.

`make bench-code-edit`: the Python code of a region's operator is edited again and again, under
load. Everything is real; bundles are built beforehand, so that no build takes CPU meanwhile. The
gap of an edit is the longest without an output of a key group from the submission until the job is
healthy again; beside it stands the longest in as long a time just before.
"""

import asyncio
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from bench import report
from bench.cluster import Deployed, application, command, running_cluster
from bench.traffic import Load, Probe, create_topic, keys_by_group

SOURCE = Path(__file__).parent / "applications" / "swapping.py"
RATE = 200.0
"""Records a second."""
GROUPS = 2
KEYS_PER_GROUP = 4
EDITS = 12
CALM_SECONDS = 10.0
"""Between two edits: what goes on without one."""
TAIL_SECONDS = 2.0
"""Behind an edit, and still part of it."""

console = Console()
Keys = Mapping[int, list[str]]


@dataclass(frozen=True)
class Edit:
    """What one edit cost. Times in seconds."""

    gaps: list[float]
    """Longest without an output, by key group."""
    steady: list[float]
    """The same just before."""
    took: float
    """From the submission until the job was healthy with the new code."""
    restarted: int
    """Pods that are not those of before."""


async def edited(app: Deployed, bundle: Path, keys: Keys, probe: Probe) -> Edit:
    """Submit a bundle and wait until its code runs."""
    await asyncio.sleep(CALM_SECONDS)
    before, began = await app.pods(), time.time()
    await command(app.cluster, "submit", str(bundle), "--wait")
    took = time.time() - began
    await asyncio.sleep(TAIL_SECONDS)
    end, after = time.time(), await app.pods()
    gaps, steady = (
        [probe.arrivals.longest_gap(group, start, stop) for group in keys.values()]
        for start, stop in ((began, end), (began - CALM_SECONDS, began))
    )
    found = Edit(gaps, steady, took, sum(before[name] != after.get(name) for name in before))
    console.print(f"longest gap {max(gaps):.2f} s, before {max(steady):.2f} s; took {took:.1f} s")
    return found


async def built(app: Deployed, folder: Path) -> list[Path]:
    """Build the versions of the application."""
    bundles = []
    for version in (1, 2):
        source = folder / str(version) / SOURCE.name
        source.parent.mkdir()
        text = SOURCE.read_text().replace("VERSION = 0", f"VERSION = {version}")
        source.write_text(text)
        bundles.append(source.with_suffix(".zip"))
        await command(app.cluster, "build", str(source), "--out", str(bundles[-1]))
    return bundles


def figures(edits: list[Edit], lost: int, duplicated: int) -> dict[str, float]:
    """Return the figures by name."""
    gaps = [gap for edit in edits for gap in edit.gaps]
    steady = [gap for edit in edits for gap in edit.steady]
    return {
        "swap_gap_s_p50": round(report.percentile(gaps, 0.5), 2),
        "swap_gap_s_p95": round(report.percentile(gaps, 0.95), 2),
        "steady_gap_s_p95": round(report.percentile(steady, 0.95), 2),
        "took_s_p50": round(report.percentile([edit.took for edit in edits], 0.5), 1),
        "edits": len(edits),
        "pods_restarted": sum(edit.restarted for edit in edits),
        "lost": lost,
        "duplicated": duplicated,
    }


async def main() -> None:
    """Edit on a fresh embedded environment."""
    keys = keys_by_group(GROUPS, KEYS_PER_GROUP)
    every_key = [key for same_rank in zip(*keys.values(), strict=True) for key in same_rank]
    with tempfile.TemporaryDirectory(prefix="streamgraft-bench-") as folder:
        async with running_cluster(Path(folder, "cluster")) as cluster:
            servers = cluster.bootstrap_servers
            create_topic(servers, "bench-in-swapping", 1)
            async with application(cluster, SOURCE) as app:
                bundles = await built(app, Path(folder))
                with Probe(servers, "bench-out-swapping", GROUPS) as probe:
                    with Load(servers, "bench-in-swapping", every_key, RATE) as load:
                        edits = [
                            await edited(app, bundles[number % len(bundles)], keys, probe)
                            for number in range(EDITS)
                        ]
                    await probe.drained(load.sent)
                lost, duplicated = probe.arrivals.lost(load.sent), probe.arrivals.duplicated()
    settings = {"rate": RATE, "trigger_seconds": 0.5, "edited": "the region's Python code"}
    report.write("code-edit", settings, figures(edits, lost, duplicated))


if __name__ == "__main__":
    asyncio.run(main())
