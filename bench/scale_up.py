"""A load that jumps: how long from the HPA's decision until new channels help, and all serve.

`make bench-scale-up`: the live HPA raises the width of a region from 1 to 4, again and again, with
as many drivers in the warm pool as the operator finds right, with enough, and without any; in
between the load and the width go back. Whatever new channels need to start they take from the cores
that the load needs. Everything is real.

The decision is when the operator saw the HPA's width, and all channels serve once every shard that
moved has committed a batch. A change may be divided: then the last of its parts counts.
"""

import asyncio
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from rich.console import Console

from bench import report
from bench.cluster import Deployed, application, running_cluster
from bench.pods import cpu_seconds
from bench.traffic import Load, Probe, create_topic, keys_by_group
from streamgraft_common import names
from streamgraft_common.conditions import is_ready
from streamgraft_common.kube.client import Object
from streamgraft_common.resources.job import WarmPool
from streamgraft_common.timestamps import from_rfc3339
from streamgraft_local import ClusterSpec

REGION = "work"
GROUPS = 8
KEYS_PER_GROUP = 4
WIDEST = 4
POOLS: Mapping[str, WarmPool] = {"auto": "auto", "warm": WIDEST - 1, "cold": 0}
"""Sizes of the warm pool."""
FIRST = "auto_first"
"""The first rise of a new job whose pool the operator sizes: it has seen none yet."""
CASES = (FIRST, *POOLS)
RISES = 3
"""Of each case, and one that is the first."""
QUIET, HIGH = 100.0, 1000.0
"""Records/s; a channel can do fewer than 400, and four of them more than HIGH."""
BURST, BURST_SECONDS = 8000.0, 0.5
"""What a jump begins with, records/s: the HPA sees at its first look that it needs all channels."""
FEW = 2 * QUIET
"""Records that wait when all is well: what is on its way."""
WINDOW_SECONDS = 10
"""Of the metrics: shorter than the default, so that jumps show sooner."""
CALM_SECONDS = 5.0
PATIENCE_SECONDS = 300.0
POLL_SECONDS = 0.2

console = Console()


@dataclass(frozen=True)
class Rise:
    """One jump of the load; times in seconds from the HPA's decision."""

    case: str
    pool: int
    """Drivers that waited in the warm pool when the load jumped."""
    decided: float
    """Seconds from the jump to the decision."""
    first_help: float
    """Until the first batch of a new channel was committed."""
    serving: float
    """Until all channels served."""
    decisions: int
    """Widths that the HPA asked for, one after the other, until it was the largest."""


class Drivers:
    """Notes what CPU time each new driver has taken when it is first seen to be ready."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)
        """Those that waited in the pool are of `warm`, others of `cold`."""
        self._seen: set[str] = set()

    async def follow(self, app: Deployed) -> None:
        """Watch all drivers of a job, until cancelled; those that are ready now don't count."""
        self._seen = {pod["metadata"]["uid"] for pod in await app.drivers() if is_ready(pod)}
        while True:
            for pod in await app.drivers():
                if is_ready(pod) and pod["metadata"]["uid"] not in self._seen:
                    self._note(pod)
            await asyncio.sleep(POLL_SECONDS)

    def _note(self, pod: Object) -> None:
        self._seen.add(pod["metadata"]["uid"])
        kind = "warm" if names.LABEL_POOL in pod["metadata"]["labels"] else "cold"
        with suppress(psutil.NoSuchProcess):
            self.seconds[kind].append(cpu_seconds(pod))


def first_help(pes: Iterable[Object]) -> float:
    """Return when the first batch of a new channel was committed (Unix time)."""
    shards = (
        shard
        for pe in pes
        if pe["spec"].get("channel")
        for shard in pe["status"]["runtime"]["shards"].values()
    )
    return min(from_rfc3339(shard["firstBatchAt"]) for shard in shards if "firstBatchAt" in shard)


async def quiet(app: Deployed, load: Load, pool: WarmPool) -> int:
    """Let the load, the width, and the pool be as they were before a jump; return its size."""
    load.rate = QUIET
    async with asyncio.timeout(PATIENCE_SECONDS):
        await app.settled(REGION, FEW)
    if pool == "auto":
        return await app.pool_filled()
    await app.calm(pool)
    await asyncio.sleep(CALM_SECONDS)
    return pool


async def risen(case: str, pool: int, app: Deployed, load: Load) -> Rise:
    """Let the load jump, and wait until all channels serve. `pool`: drivers that wait."""
    jumped = time.time()
    load.rate = BURST
    await asyncio.sleep(BURST_SECONDS)
    load.rate = HIGH
    asked: list[int] = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            region = await app.region(REGION)
            width = region["spec"]["width"]
            asked += [width] if width > 1 and width not in asked[-1:] else []
            changes = [
                change
                for change in region["status"].get("changes", [])
                if from_rfc3339(change["requestedAt"]) >= jumped
            ]
            last = changes[-1] if changes else {}
            if last.get("toWidth") == WIDEST and last.get("servingAt"):
                break
            await asyncio.sleep(POLL_SECONDS)
    decided = from_rfc3339(changes[0]["requestedAt"])
    return Rise(
        case,
        pool,
        decided=decided - jumped,
        first_help=first_help(await app.pes()) - decided,
        serving=from_rfc3339(last["servingAt"]) - decided,
        decisions=len(asked),
    )


async def measure(app: Deployed, load: Load) -> list[Rise]:
    """Let the load jump, again and again, in each case."""
    found: list[Rise] = []
    for case, pool in POOLS.items():
        await app.set_warm_pool(pool)
        for name in [*[FIRST] * (case == "auto"), *[case] * RISES]:
            size = await quiet(app, load, pool)
            found.append(await risen(name, size, app, load))
            console.print(
                f"{name}, {size} drivers wait: decided after {found[-1].decided:.1f} s; from there"
                f" the first new channel helps after {found[-1].first_help:.1f} s, all serve after"
                f" {found[-1].serving:.1f} s ({found[-1].decisions} decisions)"
            )
    load.rate = QUIET
    return found


def figures(
    rises: list[Rise], drivers: Mapping[str, list[float]], lost: int, duplicated: int
) -> dict[str, float]:
    """Return the figures by name. `drivers`: CPU seconds by kind."""
    found: dict[str, float] = {}
    for case in CASES:
        of_case = [item for item in rises if item.case == case]
        serving = [item.serving for item in of_case]
        helped = [item.first_help for item in of_case]
        found[f"decision_to_serving_s_p50.{case}"] = round(report.percentile(serving, 0.5), 1)
        found[f"decision_to_serving_s_max.{case}"] = round(max(serving), 1)
        found[f"first_help_s.{case}"] = round(report.percentile(helped, 0.5), 1)
        found[f"decisions.{case}"] = sum(item.decisions for item in of_case)
        found[f"pool_least.{case}"] = min(item.pool for item in of_case)
    for kind, seconds in drivers.items():
        found[f"driver_cpu_s.{kind}"] = round(report.percentile(seconds, 0.5), 1)
    every_driver = [seconds for kind in drivers.values() for seconds in kind]
    found["driver_cpu_s"] = round(report.percentile(every_driver, 0.5), 1)
    decided = [item.decided for item in rises]
    found["jump_to_decision_s_p50"] = round(report.percentile(decided, 0.5), 1)
    return found | {"rises": len(rises), "lost": lost, "duplicated": duplicated}


async def main() -> None:
    """Let the load jump on a fresh embedded environment."""
    keys = keys_by_group(GROUPS, KEYS_PER_GROUP)
    every_key = [key for same_rank in zip(*keys.values(), strict=True) for key in same_rank]
    drivers = Drivers()
    with tempfile.TemporaryDirectory(prefix="streamgraft-bench-") as folder:
        async with running_cluster(Path(folder), WINDOW_SECONDS) as cluster:
            servers = cluster.bootstrap_servers
            create_topic(servers, "bench-in-growing", 1)
            source = Path(__file__).parent / "applications" / "growing.py"
            async with application(cluster, source, {"warmPool": 0}) as app:
                with Probe(servers, "bench-out-growing", GROUPS) as probe:
                    with Load(servers, "bench-in-growing", every_key, QUIET) as load:
                        async with asyncio.TaskGroup() as group:
                            watching = group.create_task(drivers.follow(app))
                            rises = await measure(app, load)
                            watching.cancel()
                    await probe.drained(load.sent)
                lost, duplicated = probe.arrivals.lost(load.sent), probe.arrivals.duplicated()
    settings = {
        "rises_per_case": RISES,
        "records_per_s": {"quiet": QUIET, "high": HIGH},
        "records_at_the_jump": BURST * BURST_SECONDS,
        "widths": [1, WIDEST],
        "warm_pool": POOLS,
        "metrics_window_seconds": WINDOW_SECONDS,
        "hpa_sync_seconds": ClusterSpec().hpa_sync_seconds,
        "trigger_seconds": 0.5,
    }
    report.write("scale-up", settings, figures(rises, drivers.seconds, lost, duplicated))


if __name__ == "__main__":
    asyncio.run(main())
