"""Width changes of a running region: gaps, losses, duplicates, and what was restarted.

`make bench-width-change [CASES="stateless realtime"]`: regions of eight key groups go through the
widths 1→2→4→5→4→1, set through `/scale`, with as many warm pods as that needs; and through 1→2→1 by
savepoint. One of 32 key groups goes from 1 to 16 and back. Everything is real: API server, Kafka,
Spark. Gaps are those of the output, per key group.

The gap of a change is the longest until it is over, and the longest of many is longer than that of
few: so what a change added is told by the longest gap in a time as long just before it.
"""

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

from confluent_kafka import Producer
from rich.console import Console

from bench import report
from bench.cluster import Deployed, application, running_cluster
from bench.traffic import Arrivals, Load, Probe, create_topic, keys_by_group
from bench.width_gaps import Change, Result, table
from streamgraft_common.timestamps import from_rfc3339
from streamgraft_local import Cluster

REGION = "work"
"""Of the applications under load."""
KEYS_PER_GROUP = 4
WIDTHS = (1, 2, 4, 5, 4, 1)
"""From four to five only one channel gives a key group: the others are to notice nothing."""
SAVEPOINT_WIDTHS = (1, 2, 1)
WARM_SECONDS = 10.0
BEHIND = 3.0
"""Seconds of load that may be under way when all is well."""
STEADY_SECONDS = 20.0
"""Before each change: its gaps are what the trigger interval makes. Looked at for as long as the
change takes, and for all of it if that takes longer."""
PHASES_SECONDS = 5.0
"""Batches begin and end at fixed times, a whole multiple of which changes would take: they come
later by up to so long, at random."""
LATENCY_SECONDS = 10.0
SETTLE_SECONDS = 3.0
"""After a change has finished, and still part of it."""
CHANGE_TIMEOUT_SECONDS = 180.0
FLOWING_TIMEOUT_SECONDS = 300.0
IDS_PER_RECORD = 100
"""State that one record makes while it is built up."""
FIRST_STATE_ID = 1 << 40

console = Console()
Keys = Mapping[int, list[str]]


@dataclass(frozen=True)
class Case:
    """One application under load. `rate`: records a second; `state_keys`: in place beforehand."""

    name: str
    application: str
    rate: float
    slots: int
    trigger_seconds: float | None = None
    """None in real-time mode."""
    state_keys: int = 0
    groups: int = 8
    """Key groups, so the largest width."""
    widths: tuple[int, ...] = WIDTHS

    @property
    def job(self) -> str:
        """Name of the job, which cases of the same application share."""
        return self.application if self.groups == Case.groups else self.name

    @property
    def warm_pods(self) -> int:
        """All that the case needs: they are there before the load, as their start takes CPU that
        the load then has for itself."""
        changes = (*pairwise(self.widths), *pairwise(SAVEPOINT_WIDTHS))
        return sum(max(0, to - width) for width, to in changes)


CASES = {
    case.name: case
    for case in (
        Case("stateless", "stateless", rate=1000.0, slots=2, trigger_seconds=0.5),
        Case("realtime", "realtime", rate=500.0, slots=8),
        Case("state_1m", "state", 500.0, slots=2, trigger_seconds=0.5, state_keys=1_000_000),
        Case("state_4m", "state", 500.0, slots=2, trigger_seconds=0.5, state_keys=4_000_000),
        # Triggers are so far apart that sixteen channels leave two cores time.
        Case("wide", "stateless", 500.0, 2, trigger_seconds=3.0, groups=32, widths=(1, 16, 1)),
    )
}


@dataclass(frozen=True)
class Span:
    """When a width change was, and what moved. Times are Unix seconds."""

    widths: tuple[int, int]
    steady: float
    """Seconds before the request in which nothing else happened."""
    requested: float
    serving: float
    finished: float
    affected: frozenset[int]
    """Key groups of channels that gave or took some."""
    restarted: int
    state_bytes: int


class Run:
    """An application with its load, its state, and what comes out of it."""

    def __init__(self, cluster: Cluster, app: Deployed, probe: Probe, keys: Keys) -> None:
        self.app = app
        self.probe = probe
        self.keys = keys
        self.state_keys = 0
        self._warm_pods = 0
        self._random = Random(0)
        self._servers = cluster.bootstrap_servers
        self._checkpoints = cluster.checkpoints

    async def through_all_widths(self, case: Case) -> Result:
        """Build the state that is missing, and change the width under load."""
        every_key = [key for same in zip(*self.keys.values(), strict=True) for key in same]
        self._build_state(every_key, case.state_keys)
        self._warm_pods = case.warm_pods
        await self.app.set_warm_pool(case.warm_pods)
        await self.app.calm(case.warm_pods)
        first = len(self.probe.arrivals.items)
        before = await self.app.neighbours()
        with Load(self._servers, f"bench-in-{case.job}", every_key, case.rate) as load:
            await self._flowing(load, first)
            spans = await self._through(case.widths, STEADY_SECONDS)
            await self.app.set_strategy(REGION, "savepoint")
            by_savepoint = await self._through(SAVEPOINT_WIDTHS, 0.0)
            await self.app.set_strategy(REGION, "handover")
            after = await self.app.neighbours()
        await self.probe.drained(load.sent)
        arrivals = self.probe.arrivals.since(first)
        return Result(
            [self._cost(span, load, arrivals) for span in spans],
            lost=arrivals.lost(load.sent),
            duplicated=arrivals.duplicated(),
            out_of_order=arrivals.out_of_order(),
            neighbour_restarts=sum(before[name] != after.get(name) for name in before),
            by_savepoint=[self._cost(span, load, arrivals) for span in by_savepoint],
        )

    async def _through(self, widths: Sequence[int], steady: float) -> list["Span"]:
        return [await self._change(width, wanted, steady) for width, wanted in pairwise(widths)]

    def _build_state(self, keys: list[str], wanted: int) -> None:
        producer = Producer({"bootstrap.servers": self._servers, "linger.ms": 20})
        topic = f"bench-in-{self.app.job}"
        for number in range(self.state_keys // IDS_PER_RECORD, wanted // IDS_PER_RECORD):
            key = keys[number % len(keys)]
            first = FIRST_STATE_ID + number * IDS_PER_RECORD
            value = json.dumps({"id": first, "key": key, "count": IDS_PER_RECORD})
            producer.produce(topic, value, key)
            producer.poll(0)
        if left := producer.flush(60):
            raise RuntimeError(f"{left} records could not be sent")
        self.state_keys = wanted

    async def _flowing(self, load: Load, first: int) -> None:
        """Wait until nothing is behind: the newest output was sent a moment ago."""
        began = time.monotonic()
        async with asyncio.timeout(FLOWING_TIMEOUT_SECONDS):
            await asyncio.sleep(WARM_SECONDS)
            while self.probe.arrivals.since(first).newest_id() < load.sent - BEHIND * load.rate:
                await asyncio.sleep(0.5)
        console.print(f"{self.app.job}: flows after {time.monotonic() - began:.0f} s")

    async def _change(self, width: int, wanted: int, steady: float) -> "Span":
        await self.app.calm(self._warm_pods)
        pods, before = await self.app.pods(), await self._channels()
        await asyncio.sleep(steady + self._random.uniform(0, PHASES_SECONDS))
        requested = time.time()
        await self.app.scale(REGION, wanted)
        status = await self._finished(wanted)
        self._warm_pods -= max(0, wanted - width)
        await self.app.set_warm_pool(self._warm_pods)
        serving, finished = from_rfc3339(status["servingAt"]), from_rfc3339(status["finishedAt"])
        await asyncio.sleep(
            max(finished + SETTLE_SECONDS, requested + LATENCY_SECONDS) - time.time()
        )
        now = await self.app.pods()
        moved = frozenset(status.get("movedShards", []))
        channels = [*before, *await self._channels()]
        console.print(f"{self.app.job}: {width}→{wanted} served after {serving - requested:.1f} s")
        return Span(
            (width, wanted),
            steady,
            requested,
            serving,
            finished,
            moved.union(*(groups for groups in channels if groups & moved)),
            sum(pods[pe] != now[pe] for pe in pods.keys() & now.keys()),
            sum(self._state_bytes(shard) for shard in moved),
        )

    async def _channels(self) -> list[frozenset[int]]:
        """Return the key groups of each channel."""
        pes = await self.app.pes()
        return [frozenset(pe["spec"]["shards"]) for pe in pes if "region" in pe["spec"]]

    async def _finished(self, width: int) -> dict[str, Any]:
        async with asyncio.timeout(CHANGE_TIMEOUT_SECONDS):
            while True:
                changes = (await self.app.region(REGION))["status"].get("changes", [])
                last: dict[str, Any] = changes[-1] if changes else {}
                if last.get("toWidth") == width and last.get("finishedAt"):
                    return last
                await asyncio.sleep(0.2)

    def _cost(self, span: "Span", load: Load, arrivals: Arrivals) -> Change:
        """Return what a change cost. Not called under load: it takes the probe's time."""

        def gaps(start: float, end: float) -> dict[int, float]:
            return {
                group: arrivals.longest_gap(keys, start, end) for group, keys in self.keys.items()
            }

        over = span.finished + SETTLE_SECONDS
        before = span.requested - min(over - span.requested, span.steady)
        after = span.requested + LATENCY_SECONDS
        latencies = [
            item.at - load.sent_at[item.id]
            for item in arrivals.items
            if span.requested <= item.at <= after
        ]
        return Change(
            *span.widths,
            span.serving - span.requested,
            gaps(before, span.requested) if span.steady else {},
            gaps(span.requested, over),
            span.affected,
            report.percentile(latencies, 0.99),
            span.restarted,
            span.state_bytes,
        )

    def _state_bytes(self, shard: int) -> int:
        folders = self._checkpoints.glob(f"*/{self.app.job}-*/*/{shard}/state")
        return sum(
            file.stat().st_size
            for folder in folders
            for file in folder.rglob("*")
            if file.is_file()
        )


async def measure(
    cluster: Cluster, folder: Path, cases: list[Case]
) -> AsyncIterator[tuple[str, Result]]:
    """Run cases of one application, one after the other, and tell each result at once."""
    name, groups = cases[0].job, cases[0].groups
    create_topic(cluster.bootstrap_servers, f"bench-in-{name}", 1)
    source = Path(__file__).parent / "applications" / f"{cases[0].application}.py"
    if name != cases[0].application:
        text = source.read_text().replace(f'"{source.stem}"', f'"{name}"')
        source = folder / f"{name}.py"
        source.write_text(text.replace("MAX_WIDTH = 8", f"MAX_WIDTH = {groups}"))
    driver = {"slots": cases[0].slots, "triggerSeconds": cases[0].trigger_seconds}
    spec = {"processingElement": driver}
    async with application(cluster, source, spec) as app:
        with Probe(cluster.bootstrap_servers, f"bench-out-{name}", groups) as probe:
            run = Run(cluster, app, probe, keys_by_group(groups, KEYS_PER_GROUP))
            for case in cases:
                yield case.name, await run.through_all_widths(case)


def settings(case: Case) -> dict[str, object]:
    """Return what the figures of a case depend on."""
    return {
        "rate": case.rate,
        "slots": case.slots,
        "trigger_seconds": case.trigger_seconds,
        "state_keys": case.state_keys,
        "key_groups": case.groups,
        "widths": list(case.widths),
    }


def figures(results: Mapping[str, Result], kept: Mapping[str, float]) -> dict[str, float]:
    """Return the figures by name. `kept`: of cases that did not run this time."""
    found = {
        f"{case}.{name}": value
        for case, result in results.items()
        for name, value in result.figures().items()
    }
    points = [
        (CASES[case].state_keys / 1e6, gap * 1000)
        for case, result in results.items()
        for change in result.changes
        for gap in change.added_gaps
        if CASES[case].state_keys
    ]
    if len({keys for keys, _ in points}) > 1:
        found["state.added_gap_ms_per_million_keys"] = round(report.slope(points), 2)
    found = {**kept, **found}

    def of_each(name: str) -> list[float]:
        return [found[key] for case in CASES if (key := f"{case}.{name}") in found]

    for name in ("lost", "duplicated", "out_of_order", "neighbour_restarts", "pods_restarted"):
        found[name] = sum(of_each(name))
    found["serving_s_p50"] = report.percentile(of_each("serving_s_p50"), 0.5)
    return found


def write(results: Mapping[str, Result]) -> None:
    """Write the figures of cases that ran, beside those of others from before."""
    last = report.read("width-change")
    described = last.get("settings", {}).get("cases", {})
    cases = {name: case for name, case in described.items() if name in CASES}
    kept = {
        name: figure
        for name, figure in last.get("figures", {}).items()
        if name.partition(".")[0] in cases.keys() - results.keys()
    }
    cases |= {name: settings(CASES[name]) for name in results}
    report.write("width-change", {"cases": cases}, figures(results, kept))


async def main() -> None:
    """Run the cases that the command line names, all by default."""
    chosen = [CASES[name] for name in sys.argv[1:] or CASES]
    results: dict[str, Result] = {}
    with tempfile.TemporaryDirectory(prefix="streamgraft-bench-") as folder:
        async with running_cluster(Path(folder) / "cluster") as cluster:
            for name in dict.fromkeys(case.job for case in chosen):
                cases = [case for case in chosen if case.job == name]
                async for case, result in measure(cluster, Path(folder), cases):
                    results[case] = result
                    write(results)
    console.print(table(results))


if __name__ == "__main__":
    asyncio.run(main())
