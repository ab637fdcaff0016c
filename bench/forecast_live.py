"""Demand and forecast on a live job: `make bench-forecast-live`.

Two regions get the same records at the same time: few, many, few for a while, many. Of the first,
Prometheus remembers three days: on each the load rose in this quarter of an hour, and stayed high
for six hours. That past is written
into Prometheus beforehand, by its own tool; the adapter reads it when it starts. Of the second
region Prometheus knows nothing. All else is real: job, HPA, adapter, Prometheus, Kafka, Spark.
"""

import asyncio
import random
import tempfile
import time
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from tests.promtool.backfill import backfill

from bench import report
from bench.cluster import NAMESPACE, Deployed, application, running_cluster
from bench.traffic import Load, Probe, create_topic, keys_by_group
from streamgraft_autoscaler.forecast import BUCKET_SECONDS, DAY_BUCKETS, bucket_of
from streamgraft_common.timestamps import from_rfc3339
from streamgraft_local import Cluster, ClusterSpec

JOB = "forecast"
REGIONS = ("with-history", "without-history")
MAX_WIDTH = 2
QUIET, HIGH = 20.0, 110.0
"""Records/s; a channel can do fewer than 100."""
SCHEDULE = (
    ("quiet", 10.0, QUIET),
    ("high", 75.0, HIGH),
    ("dip", 100.0, QUIET),
    ("rise", 75.0, HIGH),
)
DAYS = 3
HIGH_BUCKETS = 24
SAMPLE_SECONDS = 60
WINDOW_SECONDS = 20
STARTING_SECONDS = 150.0
"""About so long after the past is written the job is ready for its rise."""
SETTLED_SECONDS = 20.0
LITTLE_SECONDS = 10.0
"""Of the load: what is on its way, and does not wait."""
PATIENCE_SECONDS = 300.0

console = Console()
Samples = Iterator[tuple[str, float, float]]


def past(now: float, rise: int) -> Samples:
    """Yield the position of the region's input over the past days up to a Unix time; `rise`: the
    number of the quarter of an hour in which the load rises, as it did at that time of each day."""
    labels = (
        f'namespace="{NAMESPACE}",streams_job="{JOB}",region="{REGIONS[0]}",stage="0",'
        'topic="of-the-past",partition="0"'
    )
    position = 0.0
    begin = (bucket_of(now) - DAYS * DAY_BUCKETS) * int(BUCKET_SECONDS)
    for at in range(begin, int(now), SAMPLE_SECONDS):
        yield labels, float(at), position
        bucket = bucket_of(at)
        rate = HIGH if (bucket - rise) % DAY_BUCKETS < HIGH_BUCKETS else QUIET
        # No two days are the same.
        position += rate * random.Random(bucket).uniform(0.95, 1.05) * SAMPLE_SECONDS


def remember(cluster: Cluster, rise: int) -> None:
    """Give Prometheus the past, and let the adapter start when it is there."""
    for name in ("adapter", "prometheus"):
        cluster.stop(name)
    storage = cluster.home.data / "prometheus"
    backfill("streamgraft_pe_input_end_offset", past(time.time(), rise), storage)
    for name in ("prometheus", "adapter"):
        cluster.start(name)


async def known(app: Deployed, region: str) -> None:
    """Wait until it is known what a channel of a region can do, it has one, and nothing waits."""
    while True:
        found = await app.signals(region)
        inputs, lag = found["demand"].get("inputs"), found["total_lag"].get("value")
        if inputs and inputs["stages"]["0"]["load"]["capacity"]:
            if inputs["surroundings"]["width"] > 1:
                # Its start was slow: it had to catch up.
                await app.scale(region, 1)
            elif lag is not None and lag < LITTLE_SECONDS * QUIET:
                break
        await asyncio.sleep(2.0)
    rate = inputs["stages"]["0"]["load"]["capacity"]["true_rate"]
    forecast = inputs["surroundings"]["forecast"]
    error = f"forecast with an error of {forecast['error']:.1%}" if forecast else "no forecast"
    console.print(f"{region}: {error}, a channel can do {rate:.0f} records/s")


async def run(app: Deployed, load: Load, rise: int) -> float:
    """Send the load of the schedule, not before the quarter in which it rises; return its begin."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        for region in REGIONS:
            await known(app, region)
    await asyncio.sleep(max(0.0, rise * BUCKET_SECONDS + SETTLED_SECONDS - time.time()))
    begin = time.time()
    for name, seconds, rate in SCHEDULE:
        console.print(f"{time.time() - begin:5.0f} s {name}: {rate:g} records/s")
        load.rate = rate
        await asyncio.sleep(seconds)
    load.rate = 0.0
    return begin


def starts() -> dict[str, float]:
    """Return when each part of the schedule begins, in seconds."""
    found, at = {}, 0.0
    for name, seconds, _ in SCHEDULE:
        found[name] = at
        at += seconds
    return {**found, "end": at}


async def course(app: Deployed, region: str, begin: float) -> list[dict[str, float]]:
    """Return the width changes: when they were asked for, and when the new width served, in
    seconds of the schedule."""
    changes = (await app.region(region))["status"].get("changes", [])
    return [
        {
            "from": change["fromWidth"],
            "to": change["toWidth"],
            "asked_s": round(from_rfc3339(change["requestedAt"]) - begin, 1),
            "serving_s": round(from_rfc3339(change["servingAt"]) - begin, 1),
        }
        for change in changes
        if change.get("servingAt")
        and begin <= from_rfc3339(change["requestedAt"]) < begin + starts()["end"]
    ]


def figures(
    changes: list[dict[str, float]], probe: Probe, load: Load, begin: float
) -> dict[str, float]:
    """Return the figures of one region."""
    dip, rise, end = (starts()[name] for name in ("dip", "rise", "end"))
    rose = range(bisect_left(load.sent_at, begin + rise), load.sent)
    delays = [item.at - load.sent_at[item.id] for item in probe.arrivals.items if item.id in rose]
    found = {
        "changes": len(changes),
        "narrowed_in_dip": sum(
            change["to"] < change["from"] and dip <= change["asked_s"] < rise for change in changes
        ),
        "seconds_narrow_after_rise": max(
            (min(change["serving_s"], end) - rise for change in changes if change["asked_s"] > dip),
            default=0.0,
        ),
        "delay_s_p50_after_rise": report.percentile(delays, 0.5),
        "delay_s_max_after_rise": max(delays),
        "lost": probe.arrivals.lost(load.sent),
        "duplicated": probe.arrivals.duplicated(),
    }
    return {name: round(value, 1) for name, value in found.items()}


async def main() -> None:
    """Run both regions on a fresh embedded environment."""
    with tempfile.TemporaryDirectory(prefix="streamgraft-bench-") as folder:
        async with running_cluster(Path(folder), WINDOW_SECONDS) as cluster:
            servers = cluster.bootstrap_servers
            create_topic(servers, f"bench-in-{JOB}", 1)
            rise = bucket_of(time.time() + STARTING_SECONDS)
            await asyncio.to_thread(remember, cluster, rise)
            source = Path(__file__).parent / "applications" / f"{JOB}.py"
            async with application(cluster, source, {"processingElement": {"slots": 1}}) as app:
                await measure(app, servers, rise)


async def measure(app: Deployed, servers: str, rise: int) -> None:
    """Send the load, and write what both regions made of it."""
    keys = [key for group in keys_by_group(MAX_WIDTH, 4).values() for key in group]
    courses: dict[str, list[dict[str, float]]] = {}
    found: dict[str, float] = {}
    with (
        Probe(servers, f"bench-out-{REGIONS[0]}", 1) as one,
        Probe(servers, f"bench-out-{REGIONS[1]}", 1) as other,
    ):
        with Load(servers, f"bench-in-{JOB}", keys, QUIET) as load:
            begin = await run(app, load, rise)
        for probe in (one, other):
            await probe.drained(load.sent)
        for region, probe in zip(REGIONS, (one, other), strict=True):
            courses[region] = await course(app, region, begin)
            of_region = figures(courses[region], probe, load, begin)
            found |= {f"{name}.{region}": value for name, value in of_region.items()}
    settings = {
        "schedule": [list(part) for part in SCHEDULE],
        "history_days": DAYS,
        "change_cost_seconds": 10,
        "metrics_window_seconds": WINDOW_SECONDS,
        "hpa_sync_seconds": ClusterSpec().hpa_sync_seconds,
        "changes": courses,
    }
    report.write("forecast-live", settings, found)


if __name__ == "__main__":
    asyncio.run(main())
