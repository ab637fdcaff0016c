"""Savepoints: how long they take, and what starts from them, by size of state and by width.

`make bench-savepoint` reproduces sections 5.2 to 5.5 of "Towards autoscaling of Apache Flink jobs":
keyed state that grows, savepoints of it, and restarts from them at several widths, with the linear
fits and their R². What the paper can't do, another number of key groups, is measured as well.
Everything is real. CASES="saves" takes the savepoints by width alone, "starts" does the rest; what
does not run stays, with the day when it did.
"""

import asyncio
import random
import re
import sys
import tempfile
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import aiohttp
from confluent_kafka import Producer
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console

from bench import report
from bench.cluster import NAMESPACE, Deployed, application, command, running_cluster
from bench.size_plot import size_plot
from bench.traffic import Probe, create_topic
from streamgraft_common import names
from streamgraft_common.kube import KubeClient, load_config
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import JOB, SAVEPOINT, SavepointStatus
from streamgraft_common.timestamps import from_rfc3339
from streamgraft_local import Cluster

KEYS = (25_000, 125_000, 250_000, 500_000)
TEXT_BYTES = 4000
"""Of random text, a key: 0.1, 0.5, 1 and 2 GB in all. They are hexadecimal digits, which what the
state store compresses with (LZ4) makes no smaller."""
TAKEN = 3
"""Savepoints of each size; the paper took five."""
WIDTH, WIDTHS = 2, (1, 4)
"""Width of the restarts by size, and the other ones, with the most state."""
GROUPS, MORE_GROUPS = 4, 8
STARTS, SAVES = CASES = ("starts", "saves")
"""Savepoints and starts by size, and starts by width; savepoints by width."""
MARKERS = 64
"""Records that show that each key group flows again."""
PATIENCE_SECONDS = 900.0
MEGABYTE = 1e6
SOURCE = Path(__file__).parent / "applications" / "savepoint.py"
PLOTS = Path(__file__).parents[1] / "docs" / "images"

console = Console()
Points = list[tuple[float, float]]


@dataclass(frozen=True)
class Taken:
    """One savepoint. Times in seconds."""

    megabytes: float
    width: int
    still: float
    """How long the sources stood still."""
    save: float
    """Of that: copying."""


@dataclass(frozen=True)
class Restart:
    """One start from a savepoint. Times in seconds."""

    megabytes: float
    width: int
    groups: int
    flowing: float
    """From the command (it stops the job) until all markers came out."""
    parts: Mapping[str, float]
    """Of that: until the job that was has gone and the new one is there, until all of its drivers
    are up, and until records flow. Kubernetes' times are whole seconds."""
    loads: list[float]
    """Of each channel: its shards' mean from the start to the end of their first batch."""


class Traffic:
    """Records with random texts, each of a key of its own, and what comes out of them."""

    def __init__(self, servers: str, probe: Probe) -> None:
        self.sent = 0
        self.probe = probe
        self._random = random.Random(1)
        self._producer = Producer({"bootstrap.servers": servers, "linger.ms": 20})

    async def send(self, count: int) -> range:
        """Send records, and return their ids."""
        ids = range(self.sent, self.sent + count)
        for number in ids:
            text = self._random.randbytes(TEXT_BYTES // 2).hex()
            value = f'{{"id":{number},"key":"key-{number}","text":"{text}"}}'
            self._producer.produce("bench-in-savepoint", value)
            if number % 5000 == 0:
                await self._flush()
        await self._flush()
        self.sent = ids.stop
        return ids

    async def out(self, ids: range) -> float:
        """Wait until the last of the ids came out, and return when they did. Those before came out
        then as well: they are in order in each key group, and the last are of all groups."""
        came, seen = dict.fromkeys(ids[-MARKERS:], 0.0), 0
        arrivals = self.probe.arrivals.items
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not all(came.values()):
                await asyncio.sleep(0.2)
                seen, new = len(arrivals), arrivals[seen:]
                came |= {item.id: item.at for item in new if item.id in came}
        return max(came.values())

    async def _flush(self) -> None:
        left = await asyncio.to_thread(self._producer.flush, 60)
        assert left == 0, f"{left} records were not written"


@dataclass
class Bench:
    """The job, its traffic and what was measured."""

    cluster: Cluster
    app: Deployed
    traffic: Traffic
    client: KubeClient
    folder: Path

    async def saved(self, name: str, width: int) -> Taken:
        """Take a savepoint of the job, which has this width."""
        await command(self.cluster, "savepoint", "create", self.app.job, "--name", name)
        item = await self.client.get(SAVEPOINT.path(NAMESPACE, name))
        status = SavepointStatus.model_validate(item["status"])
        seconds = status.duration_seconds or 0.0, status.save_seconds or 0.0
        return Taken(status.size_bytes / MEGABYTE, width, *seconds)

    async def restart(self, name: str, megabytes: float, width: int, groups: int) -> Restart:
        """Start the job anew from a savepoint."""
        source = self.folder / SOURCE.name
        source.write_text(SOURCE.read_text().replace("max_width=4", f"max_width={groups}"))
        began = time.time()
        options = ("--width", f"work={width}", "--yes")
        await command(self.cluster, "savepoint", "restore", name, str(source), *options)
        markers = await self.traffic.send(MARKERS)
        flowing = await self.traffic.out(markers) - began
        await self.app.calm(0)
        parts = await self._parts(began, flowing)
        found = Restart(megabytes, width, groups, flowing, parts, await self._loads())
        console.print(f"{groups} groups, width {width}, {megabytes:.1f} MB: {flowing:.1f} s")
        return found

    async def _parts(self, began: float, flowing: float) -> dict[str, float]:
        job = await self.client.get(JOB.path(NAMESPACE, self.app.job))
        there = from_rfc3339(job["metadata"]["creationTimestamp"]) - began
        pods = [await self.app.pod(pe["status"]["pod"]) for pe in await self.app.pes()]
        up = max(map(_ready_at, pods)) - began
        return {"stop_s": there, "drivers_s": up - there, "flow_s": flowing - up}

    async def _loads(self) -> list[float]:
        found = []
        async with aiohttp.ClientSession() as http:
            for pe in await self.app.pes():
                if pe["spec"].get("region"):
                    pod = await self.app.pod(pe["status"]["pod"])
                    url = f"http://{pod['status']['podIP']}:{names.CONTROL_PORT}/metrics"
                    async with http.get(url) as answer:
                        found.append(_load(await answer.text()))
        return found


def _ready_at(pod: Object) -> float:
    """Return since when a pod is ready (Unix time)."""
    (ready,) = (item for item in pod["status"]["conditions"] if item["type"] == "Ready")
    return from_rfc3339(ready["lastTransitionTime"])


def _load(metrics: str) -> float:
    """Return how long a shard of a PE took from its start to the end of its first batch."""
    sums = {"start": 0.0, "batches": 0.0, "count": 0.0}
    for family in text_string_to_metric_families(metrics):
        for name, labels, value, *_ in family.samples:
            if name == "streamgraft_pe_handover_seconds_sum" and labels["phase"] == "start":
                sums["start"] += value
            if name == "streamgraft_pe_handover_seconds_count" and labels["phase"] == "start":
                sums["count"] += value
            if name == "streamgraft_pe_batch_duration_seconds_sum":
                sums["batches"] += value
    return (sums["start"] + sums["batches"]) / sums["count"]


async def measure(bench: Bench, cases: Collection[str]) -> tuple[list[Taken], list[Restart]]:
    """Grow the state; save and restart at each size, and with the most state at each width."""
    taken, restarts = [], []
    for keys in KEYS if STARTS in cases else KEYS[-1:]:
        await bench.traffic.out(await bench.traffic.send(keys - bench.traffic.sent))
        for number in range(TAKEN):
            taken.append(await bench.saved(name := f"s{keys}-{number}", WIDTH))
        megabytes = taken[-1].megabytes
        for groups in (MORE_GROUPS, GROUPS) if STARTS in cases else ():
            restarts.append(await bench.restart(name, megabytes, WIDTH, groups))
    for width in WIDTHS:
        restarts.append(await bench.restart(name, megabytes, width, GROUPS))
        if SAVES in cases:
            taken += [await bench.saved(f"w{width}-{number}", width) for number in range(TAKEN)]
    return taken, restarts


def figures(
    taken: list[Taken], restarts: list[Restart], cases: Collection[str] = CASES
) -> dict[str, float]:
    """Return the figures of the cases by name: seconds, and megabytes of the savepoint."""
    found = of_starts(taken, restarts) if STARTS in cases else {}
    return found | (of_saves(taken) if SAVES in cases else {})


def of_saves(taken: list[Taken]) -> dict[str, float]:
    """Return what savepoints of the most state took at each width."""
    found: dict[str, float] = {}
    for width in (WIDTH, *WIDTHS):
        largest = [item for item in taken if item.width == width][-TAKEN:]
        found[f"still_s.width_{width}"] = round(fmean(item.still for item in largest), 3)
        found[f"save_s.width_{width}"] = round(fmean(item.save for item in largest), 3)
    return found | {"last_saved_mb": round(taken[-1].megabytes, 1)}


def of_starts(taken: list[Taken], restarts: list[Restart]) -> dict[str, float]:
    """Return what savepoints and starts took by size, and starts by width."""
    by_size = [item for item in restarts if item.width == WIDTH]
    same = [item for item in by_size if item.groups == GROUPS]
    more = [item for item in by_size if item.groups == MORE_GROUPS]
    lines = {
        "still_s": [(item.megabytes, item.still) for item in taken if item.width == WIDTH],
        "save_s": [(item.megabytes, item.save) for item in taken if item.width == WIDTH],
        "restart_s": [(item.megabytes, item.flowing) for item in same],
        "restart_more_groups_s": [(item.megabytes, item.flowing) for item in more],
        "load_mean_s": [(item.megabytes, sum(item.loads) / len(item.loads)) for item in same],
        "load_max_s": [(item.megabytes, max(item.loads)) for item in same],
    }
    found: dict[str, float] = {}
    for name, points in lines.items():
        for megabytes in sorted({x for x, _ in points}):
            values = [y for x, y in points if x == megabytes]
            found[f"{name}.{megabytes:.1f}_mb"] = round(sum(values) / len(values), 3)
        found[f"{name}.per_mb"] = round(report.slope(points), 4)
        found[f"{name}.r2"] = round(report.determination(points), 3)
    most = max(item.megabytes for item in same)
    for item in restarts:
        if item.groups == GROUPS and item.megabytes == most:
            found[f"restart_s.width_{item.width}"] = round(item.flowing, 2)
            for part, seconds in item.parts.items():
                found[f"restart_{part}.width_{item.width}"] = round(seconds, 1)
            found[f"load_mean_s.width_{item.width}"] = round(sum(item.loads) / len(item.loads), 3)
            found[f"load_max_s.width_{item.width}"] = round(max(item.loads), 3)
    # Each old group is read once for each new one in it, by the channels side by side.
    added = [
        (wide.megabytes * MORE_GROUPS / GROUPS / WIDTH, wide.flowing - narrow.flowing)
        for wide, narrow in zip(more, same, strict=True)
    ]
    found["dealt_out_s_per_mb_read"] = round(report.slope(added), 4)
    return found


def draw(found: Mapping[str, float]) -> None:
    """Write the pictures of figures 2 to 5: by size of the state, and by width."""
    names = {
        "command to flowing": "restart_s",
        "twice as many key groups": "restart_more_groups_s",
        "sources stand still": "still_s",
        "copying": "save_s",
    }
    lines = {text: _line(found, name, "", "_mb") for text, name in names.items()}
    title, over = "Savepoints, and starts from them", "size of the savepoint's files"
    picture = size_plot(title, "seconds", lines, over, "{:,.0f} MB".format)
    (PLOTS / "savepoint-size.svg").write_text(picture)
    names = {
        "sources stand still": "still_s",
        "command to flowing": "restart_s",
        "the job stops, and is made anew": "restart_stop_s",
        "drivers start": "restart_drivers_s",
        "records flow": "restart_flow_s",
        "first batch, slowest channel": "load_max_s",
        "first batch, mean": "load_mean_s",
    }
    lines = {text: _line(found, name, "width_", "") for text, name in names.items()}
    title = "Savepoint of the largest state, and start from it"
    picture = size_plot(title, "seconds", lines, "width", "{:g}".format)
    (PLOTS / "savepoint-width.svg").write_text(picture)


def write(found: Mapping[str, float], cases: Collection[str], day: str) -> dict[str, float]:
    """Write the figures of the cases that ran beside those of the other; return all of them."""
    settings = {
        "keys": list(KEYS),
        "text_bytes": TEXT_BYTES,
        "groups": GROUPS,
        "more_groups": MORE_GROUPS,
        "width": WIDTH,
        "savepoints_per_size": TAKEN,
    }
    return report.write_cases("savepoint", settings, found, cases, case_of, day)


def case_of(figure: str) -> str:
    """Return the case that a figure is measured in."""
    return SAVES if re.fullmatch(r"(still_s|save_s)\.width_\d+|last_saved_mb", figure) else STARTS


def _line(found: Mapping[str, float], name: str, prefix: str, suffix: str) -> Points:
    """Return the points of a figure, whose names have x in them."""
    pattern = re.compile(rf"{name}\.{prefix}([\d.]+){suffix}")
    matches = ((pattern.fullmatch(key), value) for key, value in found.items())
    return sorted((float(match[1]), value) for match, value in matches if match)


async def main() -> None:
    """Measure on a fresh embedded environment."""
    cases, day = sys.argv[1:] or CASES, report.today()
    assert {*cases} <= {*CASES}, f"cases are {CASES}"
    with tempfile.TemporaryDirectory(prefix="streamgraft-bench-") as name:
        async with running_cluster(Path(name)) as cluster:
            servers = cluster.bootstrap_servers
            create_topic(servers, "bench-in-savepoint", 1)
            async with (
                application(cluster, SOURCE) as app,
                KubeClient(load_config(cluster.kubeconfig)) as client,
            ):
                with Probe(servers, "bench-out-savepoint", 1) as probe:
                    traffic = Traffic(servers, probe)
                    sources = Path(name) / "applications"
                    sources.mkdir()
                    bench = Bench(cluster, app, traffic, client, sources)
                    taken, restarts = await measure(bench, cases)
    every = write(figures(taken, restarts, cases), cases, day)
    if set(map(case_of, every)) == set(CASES):
        draw(every)


if __name__ == "__main__":
    asyncio.run(main())
