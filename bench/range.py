"""What it costs a region at width 1 that it may grow, and how long records take.

`make bench-range [CASES="state.1 state.32"]`: 500 records a second of 1,000 keys go through a PE
that passes them on and a region of one channel, which writes them as well, with a trigger of a
second or in real time. `hybrid` has state in micro-batches between two PEs in real time, of which
the last writes. PEs may have shorter triggers. CPU is that of all PEs. Everything is real; all
sinks write exactly once. A case takes about two minutes.

Figures of cases that do not run stay, with the day when they did. Machines differ from day to day:
`*_beside.CASE` keeps what another case took in the same run. That is one channel that may not grow,
or, beside `hybrid`, micro-batches all the way.
"""

import asyncio
import re
import sys
import tempfile
import time
import urllib.request
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench import pods, report
from bench.cluster import Deployed, application, running_cluster
from bench.traffic import Arrival, Load, Probe, create_topic
from streamgraft_common import names
from streamgraft_local import Cluster

RATE = 500.0
KEYS = [f"key-{number}" for number in range(1000)]
WIDEST = {
    "stateless": (1, 8, 32, 64),
    "state": (1, 8, 32, 64),
    "realtime": (8, 32),
    "hybrid": (8, 32),
}
"""Largest widths of each kind of region."""
CASES = [f"{kind}.{width}" for kind, widths in WIDEST.items() for width in widths]
WARM_SECONDS = 30.0
MEASURED_SECONDS = 30.0
OUT_PARTITIONS = 8
TEMPLATE = Path(__file__).parent / "applications" / "range.py"


@dataclass(frozen=True)
class Result:
    """Of one case: CPU of all PEs in cores, and how long each record took in seconds."""

    cpu: float
    latencies: list[float]
    lost: int
    busy: float
    """Share of the channel's time in which it had tasks."""
    trigger: float
    """Seconds between its triggers at the end; 0 in real time."""

    def figures(self, case: str) -> dict[str, float]:
        """Return the figures by name."""
        return {
            f"cpu_cores.{case}": round(self.cpu, 3),
            f"latency_p50_s.{case}": round(report.percentile(self.latencies, 0.5), 3),
            f"latency_p99_s.{case}": round(report.percentile(self.latencies, 0.99), 3),
            f"lost.{case}": self.lost,
            f"busy.{case}": round(self.busy, 3),
            f"trigger_s.{case}": round(self.trigger, 3),
        }


def latencies(sent_at: list[float], arrivals: list[Arrival], start: int, end: int) -> list[float]:
    """Return the seconds that the records `start` to `end` took.

    A count tells of all records of its key up to the newest one, whose id it has.
    """
    by_key: dict[str, list[Arrival]] = defaultdict(list)
    for arrival in arrivals:
        by_key[arrival.key].append(arrival)
    found = []
    for number, key in enumerate(KEYS):
        results = iter(by_key[key])
        result = next(results, None)
        for record in range(number, end, len(KEYS)):
            while result is not None and result.id < record:
                result = next(results, None)
            if result is not None and record >= start:
                found.append(result.at - sent_at[record])
    return found


async def cpu_seconds(app: Deployed) -> float:
    """Return the CPU time of all processes of all PEs so far."""
    found = [await app.pod(pe["status"]["pod"]) for pe in await app.pes()]
    return sum(map(pods.cpu_seconds, found))


async def channel(app: Deployed) -> tuple[float, float]:
    """Return the busy seconds of the only channel so far, and its interval between triggers."""
    (pe,) = (pe for pe in await app.pes() if names.LABEL_REGION in pe["metadata"]["labels"])
    pod = await app.pod(pe["status"]["pod"])
    url = f"http://{pod['status']['podIP']}:{names.CONTROL_PORT}/metrics"
    with await asyncio.to_thread(urllib.request.urlopen, url) as answer:
        text = answer.read().decode()
    return _value(text, "streamgraft_pe_busy_seconds_total"), _value(
        text, "streamgraft_pe_trigger_seconds"
    )


def _value(text: str, metric: str) -> float:
    found = re.search(rf"^{metric} (\S+)$", text, re.MULTILINE)
    assert found is not None, f"no {metric}"
    return float(found[1])


async def measure(cluster: Cluster, folder: Path, case: str) -> Result:
    """Run a case on its own."""
    kind, _, widest = case.partition(".")
    text = TEMPLATE.read_text().replace('KIND = "state"', f'KIND = "{kind}"')
    source = folder / f"range{kind}{widest}.py"
    source.write_text(text.replace("MAX_WIDTH = 1", f"MAX_WIDTH = {widest}"))
    servers, name = cluster.bootstrap_servers, source.stem
    create_topic(servers, f"{name}-in", 1)
    async with application(cluster, source) as app:
        with Probe(servers, f"{name}-out", OUT_PARTITIONS) as probe:
            with Load(servers, f"{name}-in", KEYS, RATE) as load:
                await asyncio.sleep(WARM_SECONDS)
                first, began, before = load.sent, time.monotonic(), await cpu_seconds(app)
                busy_before, _ = await channel(app)
                await asyncio.sleep(MEASURED_SECONDS)
                spent, took = await cpu_seconds(app) - before, time.monotonic() - began
                busy, trigger = await channel(app)
                last = load.sent
            newest = [load.sent - 1 - number for number in range(len(KEYS))]
            async with asyncio.timeout(60):
                while not {*newest} <= {item.id for item in probe.arrivals.items[-4 * len(KEYS) :]}:
                    await asyncio.sleep(0.5)
    seen = latencies(load.sent_at, probe.arrivals.items, first, last)
    lost = last - first - len(seen)
    return Result(spent / took, seen, lost, (busy - busy_before) / took, trigger)


def beside(case: str) -> str:
    """Return the case that tells what another one costs."""
    kind, _, widest = case.partition(".")
    return f"state.{widest}" if kind == "hybrid" else f"{kind}.1"


def figures(results: Mapping[str, Result]) -> dict[str, float]:
    """Return the figures of a run by name; CPU ratios are to a region without a range."""
    found: dict[str, float] = {}
    for case, result in results.items():
        found |= result.figures(case)
        name = beside(case)
        if name != case and (other := results.get(name)):
            found[f"cpu_cores_beside.{case}"] = round(other.cpu, 3)
            p50 = report.percentile(other.latencies, 0.5)
            found[f"latency_p50_s_beside.{case}"] = round(p50, 3)
            if name.endswith(".1"):
                found[f"cpu_ratio.{case}"] = round(result.cpu / other.cpu, 2)
    return found


def write(results: Mapping[str, Result], day: str) -> None:
    """Write the figures of the cases that ran, beside those of others from before."""
    settings = {"rate": RATE, "keys": len(KEYS), "width": 1, "trigger_seconds": 1.0}
    found = figures(results)
    report.write_cases(
        "range", settings, found, results.keys(), lambda name: name.partition(".")[2], day
    )


async def main() -> None:
    """Measure in an environment of its own; write after each case what was found."""
    results: dict[str, Result] = {}
    day = report.today()
    with tempfile.TemporaryDirectory(prefix="streamgraft-bench-") as folder:
        async with running_cluster(Path(folder) / "cluster") as cluster:
            for case in sys.argv[1:] or CASES:
                results[case] = await measure(cluster, Path(folder), case)
                write(results, day)


if __name__ == "__main__":
    asyncio.run(main())
