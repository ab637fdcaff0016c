"""Width changes of a running region: gaps, losses, duplicates, and what was restarted.

`make bench-width-change`: a stateless and a stateful region under a steady load, widths set through
`/scale`. Everything is real: API server, Kafka, Spark. Gaps are those of the output, per key group.
"""

import asyncio
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import report
from bench.cluster import Deployed, application, running_cluster, timestamp
from bench.traffic import Load, Probe, create_topic, keys_by_group

RATE = 500.0
"""Records a second."""
GROUPS = 4
KEYS_PER_GROUP = 4
WIDTHS = (2, 4, 2, 1)
SETTLE_SECONDS = 8.0
"""Quiet time before and after a change that its gaps are looked for in."""
CHANGE_TIMEOUT_SECONDS = 180.0

console = Console()


@dataclass(frozen=True)
class Change:
    """What one width change cost. Times in seconds."""

    case: str
    from_width: int
    to_width: int
    serving: float
    moved: tuple[int, ...]
    gaps: Mapping[int, float]
    """Longest gap in the output by key group."""


@dataclass(frozen=True)
class Result:
    """What a case showed."""

    changes: Sequence[Change]
    steady_gap: float
    lost: int
    duplicated: int
    out_of_order: int
    neighbour_restarts: int


async def resize(app: Deployed, width: int) -> tuple[float, float, tuple[int, ...]]:
    """Set the width; return the times of the request and of serving, and the moved shards."""
    requested = time.time()
    await app.scale("work", width)
    async with asyncio.timeout(CHANGE_TIMEOUT_SECONDS):
        while True:
            changes = (await app.region("work"))["status"].get("changes", [])
            last: dict[str, Any] = changes[-1] if changes else {}
            if last.get("toWidth") == width and last.get("finishedAt"):
                break
            await asyncio.sleep(0.2)
    return requested, timestamp(last["servingAt"]), tuple(last.get("movedShards", []))


async def measure(case: str, app: Deployed, keys: Mapping[int, list[str]]) -> Result:
    """Run the load through all widths."""
    every_key = [key for same_rank in zip(*keys.values(), strict=True) for key in same_rank]
    servers = app.cluster.bootstrap_servers
    probe = Probe(servers, f"bench-out-{case}", GROUPS)
    spans: list[tuple[int, int, float, float, tuple[int, ...]]] = []
    with probe:
        with Load(servers, f"bench-in-{case}", every_key, RATE) as load:
            await asyncio.sleep(3 * SETTLE_SECONDS)
            steady = (time.time() - SETTLE_SECONDS, time.time())
            before = await app.neighbours()
            width = 1
            for wanted in WIDTHS:
                requested, serving, moved = await resize(app, wanted)
                await asyncio.sleep(SETTLE_SECONDS)
                spans.append((width, wanted, requested, serving, moved))
                width = wanted
            after = await app.neighbours()
        await probe.drained(load.sent)
    gap = probe.arrivals.longest_gap
    changes = [
        Change(
            case,
            old,
            new,
            serving - requested,
            moved,
            {group: gap(keys[group], requested, serving + SETTLE_SECONDS / 2) for group in keys},
        )
        for old, new, requested, serving, moved in spans
    ]
    return Result(
        changes,
        max(gap(keys[group], *steady) for group in keys),
        probe.arrivals.lost(load.sent),
        probe.arrivals.duplicated(),
        probe.arrivals.out_of_order(),
        sum(before[name] != after.get(name) for name in before),
    )


def show(results: Mapping[str, Result]) -> None:
    """Print one line per change."""
    table = Table(title="gaps in the output by key group, ms (* moved)", title_justify="left")
    for column in ("case", "width", "serving s", *(f"group {n}" for n in range(GROUPS)), "steady"):
        table.add_column(column, justify="right")
    for case, result in results.items():
        for change in result.changes:
            gaps = [
                f"{gap * 1000:.0f}{'*' if group in change.moved else ''}"
                for group, gap in change.gaps.items()
            ]
            width = f"{change.from_width}→{change.to_width}"
            steady = f"{result.steady_gap * 1000:.0f}"
            table.add_row(case, width, f"{change.serving:.1f}", *gaps, steady)
    console.print(table)


def figures(results: Mapping[str, Result]) -> dict[str, float]:
    """Return the figures by name."""
    found: dict[str, float] = {}
    for case, result in results.items():
        gaps = [gap * 1000 for change in result.changes for gap in change.gaps.values()]
        found[f"{case}.gap_ms_p95"] = round(report.percentile(gaps, 0.95), 1)
        found[f"{case}.steady_gap_ms"] = round(result.steady_gap * 1000, 1)
    every = list(results.values())
    serving = [change.serving for result in every for change in result.changes]
    return found | {
        "lost": sum(result.lost for result in every),
        "duplicated": sum(result.duplicated for result in every),
        "out_of_order": sum(result.out_of_order for result in every),
        "neighbour_restarts": sum(result.neighbour_restarts for result in every),
        "serving_s_p50": round(report.percentile(serving, 0.5), 2),
    }


async def main() -> None:
    """Run both cases, one after the other, on one fresh embedded environment."""
    keys = keys_by_group(GROUPS, KEYS_PER_GROUP)
    results: dict[str, Result] = {}
    with tempfile.TemporaryDirectory(prefix="streamgraft-bench-") as folder:
        async with running_cluster(Path(folder)) as cluster:
            for case in ("stateless", "stateful"):
                create_topic(cluster.bootstrap_servers, f"bench-in-{case}", 1)
                source = Path(__file__).parent / "applications" / f"{case}.py"
                async with application(cluster, source) as app:
                    results[case] = await measure(case, app, keys)
    show(results)
    settings = {
        "rate": RATE,
        "key_groups": GROUPS,
        "widths": [1, *WIDTHS],
        "trigger_seconds": 0.5,
    }
    report.write("width-change", settings, figures(results))


if __name__ == "__main__":
    asyncio.run(main())
