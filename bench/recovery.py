"""A killed PE: how long until its streams flow again, with and without a warm pool.

`make bench-recovery` reproduces figure 10 of the cloud native Streams paper. The pods of all PEs
of a job are killed in turn (SIGKILL, as a crash), under load. A PE has recovered once records that
were sent after the kill have come out of all of its key groups. Everything is real.

Another job shows then what a channel that dies or is frozen costs its neighbour (neighbours.py).
"""

import asyncio
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from bench import neighbours, report
from bench.cluster import Deployed, application, running_cluster
from bench.neighbours import Keys
from bench.pods import family_of
from bench.traffic import Load, Probe, create_topic, keys_by_group
from streamgraft_common.kube.client import Object

RATE = 200.0
"""Records a second."""
GROUPS = 2
KEYS_PER_GROUP = 4
PES = 4
"""A source, two channels, a sink."""
KILLS = 2 * PES
"""Of each case."""
CASES = {"warm": 1, "cold": 0}
"""Sizes of the warm pool."""
PATIENCE_SECONDS = 120.0
CALM_SECONDS = 75.0
"""Between a recovery and the next kill, after the pool is full again: by then it has rehearsed the
plans of sources and sinks, too."""

console = Console()


@dataclass(frozen=True)
class Recovery:
    """One kill."""

    case: str
    pe: str
    place: str
    """Source, region or sink."""
    seconds: float


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
    sent, seen, began = traffic.load.sent, len(traffic.probe.arrivals.items), time.time()
    for process in family:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (last := traffic.flowing(sent, seen, wanted)) is None:
            await asyncio.sleep(0.02)
    return Recovery(case, pe["metadata"]["name"], place, last - began)


@dataclass(frozen=True)
class Traffic:
    """The load and what comes out of it."""

    load: Load
    probe: Probe

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


def show(recoveries: list[Recovery]) -> None:
    """Print one line per case and PE."""
    table = Table(title="pod killed → flowing again, seconds", title_justify="left")
    for column in ("pool", "PE", "kills"):
        table.add_column(column)
    for case, pe in sorted({(item.case, item.pe) for item in recoveries}):
        seconds = [item.seconds for item in recoveries if (item.case, item.pe) == (case, pe)]
        table.add_row(case, pe, ", ".join(f"{value:.2f}" for value in seconds))
    console.print(table)


def figures(recoveries: list[Recovery]) -> dict[str, float]:
    """Return the figures by name."""
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
    return found


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
                with Probe(servers, "bench-out-recovery", GROUPS) as probe:
                    with Load(servers, "bench-in-recovery", every_key, RATE) as load:
                        traffic = Traffic(load, probe)
                        recoveries = await measure(app, keys, traffic)
                    await probe.drained(load.sent)
            beside = await neighbours.measure(cluster, keys, every_key, RATE)
    show(recoveries)
    lost = probe.arrivals.lost(load.sent) + beside.lost
    duplicated = probe.arrivals.duplicated() + beside.duplicated
    settings = {"rate": RATE, "pes": PES, "kills_per_case": KILLS, "trigger_seconds": 0.5}
    counts = {"kills": len(recoveries), "lost": lost, "duplicated": duplicated}
    report.write("recovery", settings, figures(recoveries) | beside.figures() | counts)


if __name__ == "__main__":
    asyncio.run(main())
