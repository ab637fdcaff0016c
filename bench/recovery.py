"""A killed PE: how long until its streams flow again, with and without a warm pool.

`make bench-recovery` reproduces figure 10 of the cloud native Streams paper. The pods of all PEs
of a job are killed in turn (SIGKILL, as a crash), under load. A PE has recovered once records that
were sent after the kill have come out of all of its key groups. Everything is real.

A second sink has one partition, which both channels write. A channel is struck while a transaction
of it is open there, so that readers of committed records wait for its end also with the other's.
"""

import asyncio
import tempfile
import time
from collections.abc import Container, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, cycle, islice
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from bench import report
from bench.cluster import Deployed, application, running_cluster
from bench.open_transactions import SharedPartition, stop_amid
from bench.pods import family_of
from bench.traffic import Load, Probe, create_topic, keys_by_group
from streamgraft_common.kube.client import Object

RATE = 200.0
"""Records a second."""
SHARED = "bench-shared-recovery"
GROUPS = 2
KEYS_PER_GROUP = 4
PES = 4
"""A source, two channels, a sink."""
KILLS = 2 * PES
"""Of each case."""
FREEZES = 4
FROZEN_SECONDS = 5.0
CASES = {"warm": 1, "cold": 0}
"""Sizes of the warm pool."""
PATIENCE_SECONDS = 120.0
CALM_SECONDS = 30.0
"""Between a recovery and the next kill, after the pool is full again: it rehearses the plans of
sources and sinks when all is quiet."""

SETTLED_SECONDS = 5.0
"""Records have come out by then, if nothing happens."""

console = Console()
Keys = Mapping[int, list[str]]


@dataclass(frozen=True)
class Recovery:
    """One kill."""

    case: str
    pe: str
    place: str
    """Source, region or sink."""
    seconds: float
    delays: "Delays | None"
    """Of other channels; None if the PE has no neighbours."""


@dataclass(frozen=True)
class Delays:
    """What something added to the longest time of a record of other channels, in seconds."""

    apart: float
    """In partitions of their own."""
    shared: float
    """In the partition that all write."""


PLACES = ("source", "region", "sink")


def place_of(pe: Object, first: str) -> str:
    """Return where a PE is; `first`: the name of the first one."""
    if "region" in pe["spec"]:
        return "region"
    return "source" if pe["metadata"]["name"] == first else "sink"


async def killed(
    case: str, app: Deployed, pe: Object, place: str, keys: Keys, traffic: "Traffic"
) -> Recovery:
    """Kill the pod of a PE, and wait until all of its key groups flow again."""
    groups = pe["spec"]["shards"] if place == "region" else list(keys)
    family = family_of(await app.pod(pe["status"]["pod"]))
    wanted = [keys[group] for group in groups]
    calm_until = time.time()
    stopped_at = time.time()
    if place == "region":
        mine = {*chain(*wanted)}
        stopped_at = await asyncio.to_thread(stop_amid, family, mine, traffic.partition)
    sent, seen, began = traffic.load.sent, len(traffic.probe.arrivals.items), time.time()
    for process in family:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (last := traffic.flowing(sent, seen, wanted)) is None:
            await asyncio.sleep(0.02)
    await asyncio.sleep(CALM_SECONDS)
    delays = traffic.added(keys, groups, calm_until, stopped_at)
    return Recovery(case, pe["metadata"]["name"], place, last - began, delays)


async def frozen(app: Deployed, pe: Object, keys: Keys, traffic: "Traffic") -> Delays | None:
    """Freeze a channel for a while; return what that adds to the times of the others' records."""
    groups = pe["spec"]["shards"]
    family = family_of(await app.pod(pe["status"]["pod"]))
    calm_until = time.time()
    mine = {*chain(*(keys[group] for group in groups))}
    stopped_at = await asyncio.to_thread(stop_amid, family, mine, traffic.partition)
    try:
        await asyncio.sleep(stopped_at + FROZEN_SECONDS - time.time())
    finally:
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.resume()
    await asyncio.sleep(CALM_SECONDS)
    return traffic.added(keys, groups, calm_until, stopped_at)


@dataclass(frozen=True)
class Traffic:
    """The load and what comes out of it."""

    load: Load
    probe: Probe
    shared: Probe
    partition: SharedPartition

    def flowing(self, first: int, seen: int, groups: list[list[str]]) -> float | None:
        """Return when the last group had its first output of an id from `first` on, if all had.

        `seen`: outputs before that, which are not looked at.
        """
        arrivals = self.probe.arrivals.items[seen:]
        times = []
        for keys in groups:
            came = (item.at for item in arrivals if item.id >= first and item.key in keys)
            if (at := next(came, None)) is None:
                return None
            times.append(at)
        return max(times)

    def added(
        self, keys: Keys, groups: Container[int], calm_until: float, began: float
    ) -> Delays | None:
        """Return by how much the longest time that a record of other groups took from `began` on is
        longer than in the calm before; None if there are no others."""
        others = {*chain(*(keys[group] for group in keys if group not in groups))}
        if not others:
            return None
        added = []
        for probe in (self.probe, self.shared):
            # What was sent last may not have come out when the channel was struck.
            calm = calm_until - CALM_SECONDS, calm_until - SETTLED_SECONDS
            before = self._longest(probe, others, *calm)
            after = self._longest(probe, others, began, time.time())
            added.append(max(0.0, after - before))
        return Delays(*added)

    def _longest(self, probe: Probe, keys: Container[str], start: float, end: float) -> float:
        sent_at = self.load.sent_at
        took = [
            item.at - sent_at[item.id]
            for item in probe.arrivals.items
            if item.key in keys and start <= sent_at[item.id] < end
        ]
        return max(took, default=0.0)


async def measure(app: Deployed, keys: Keys, traffic: Traffic) -> list[Recovery]:
    """Kill every PE in turn, in each case."""
    found = []
    for case, size in CASES.items():
        await app.set_warm_pool(size)
        for number in islice(cycle(range(len(await app.pes()))), KILLS):
            await app.calm(size)
            await asyncio.sleep(CALM_SECONDS)
            pes = await app.pes()
            place = place_of(pes[number], pes[0]["metadata"]["name"])
            found.append(await killed(case, app, pes[number], place, keys, traffic))
            console.print(
                f"{case}: {found[-1].pe} ({place}) flows again after {found[-1].seconds:.2f} s"
            )
    return found


async def freeze(app: Deployed, keys: Keys, traffic: Traffic) -> list[Delays]:
    """Freeze the channels in turn; return what that added for their neighbours."""
    delays: list[Delays] = []
    for number in islice(cycle(range(GROUPS)), FREEZES):
        await app.calm(0)
        await asyncio.sleep(CALM_SECONDS)
        channels = [pe for pe in await app.pes() if "region" in pe["spec"]]
        delay = await frozen(app, channels[number], keys, traffic)
        delays += [] if delay is None else [delay]
        console.print(
            f"frozen for {FROZEN_SECONDS:g} s: neighbours {delays[-1].apart:.2f} s later, in the"
            f" shared partition {delays[-1].shared:.2f} s"
        )
    return delays


def show(recoveries: list[Recovery]) -> None:
    """Print one line per case and PE."""
    table = Table(title="pod killed → flowing again, seconds", title_justify="left")
    for column in ("pool", "PE", "kills"):
        table.add_column(column)
    for case, pe in sorted({(item.case, item.pe) for item in recoveries}):
        seconds = [item.seconds for item in recoveries if (item.case, item.pe) == (case, pe)]
        table.add_row(case, pe, ", ".join(f"{value:.2f}" for value in seconds))
    console.print(table)


def figures(
    recoveries: list[Recovery], freezes: list[Delays], lost: int, duplicated: int
) -> dict[str, float]:
    """Return the figures by name; `freezes`: neighbours' delays."""
    found: dict[str, float] = {}
    for case in CASES:
        of_case = [item for item in recoveries if item.case == case]
        groups = {case: of_case} | {
            f"{case}.{place}": [item for item in of_case if item.place == place] for place in PLACES
        }
        for name, some in groups.items():
            seconds = [item.seconds for item in some]
            found[f"recovery_s_p50.{name}"] = round(report.percentile(seconds, 0.5), 2)
            found[f"recovery_s_max.{name}"] = round(max(seconds), 2)
    kills = {case: [item.delays for item in recoveries if item.case == case] for case in CASES}
    struck = kills | {"frozen": freezes}
    for name, of_strike in struck.items():
        delays = [item for item in of_strike if item is not None]
        found[f"neighbour_delay_s_max.{name}"] = round(max(item.apart for item in delays), 2)
        found[f"neighbour_delay_s_max.shared.{name}"] = round(
            max(item.shared for item in delays), 2
        )
    found["neighbour_delay_s_max"] = max(
        value for name, value in found.items() if name.startswith("neighbour_delay")
    )
    return found | {"kills": len(recoveries), "lost": lost, "duplicated": duplicated}


async def main() -> None:
    """Kill on a fresh embedded environment."""
    keys = keys_by_group(GROUPS, KEYS_PER_GROUP)
    every_key = [key for same_rank in zip(*keys.values(), strict=True) for key in same_rank]
    with tempfile.TemporaryDirectory(prefix="streamgraft-bench-") as folder:
        async with running_cluster(Path(folder)) as cluster:
            servers = cluster.bootstrap_servers
            create_topic(servers, "bench-in-recovery", 1)
            source = Path(__file__).parent / "applications" / "recovery.py"
            async with application(cluster, source) as app:
                partition = SharedPartition(servers, SHARED)
                with (
                    Probe(servers, "bench-out-recovery", GROUPS) as probe,
                    Probe(servers, SHARED, 1) as shared,
                ):
                    with Load(servers, "bench-in-recovery", every_key, RATE) as load:
                        traffic = Traffic(load, probe, shared, partition)
                        freezes = await freeze(app, keys, traffic)
                        recoveries = await measure(app, keys, traffic)
                    for each in (probe, shared):
                        await each.drained(load.sent)
                partition.close()
                came = (probe.arrivals, shared.arrivals)
                lost = sum(each.lost(load.sent) for each in came)
                duplicated = sum(each.duplicated() for each in came)
    show(recoveries)
    settings = {
        "rate": RATE,
        "pes": PES,
        "kills_per_case": KILLS,
        "trigger_seconds": 0.5,
    }
    report.write("recovery", settings, figures(recoveries, freezes, lost, duplicated))


if __name__ == "__main__":
    asyncio.run(main())
