"""Demand and forecast on a live job: `make bench-forecast-live`.

Two regions get the same records at the same time. Of the first, Prometheus remembers three days: on
each the load rose in this quarter of an hour, and stayed high for six hours. That past is written
into Prometheus beforehand, by its own tool; the adapter reads it when it starts. Of the second
region Prometheus knows nothing. All else is real: job, HPA, adapter, Prometheus, Kafka, Spark.
"""

import asyncio
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import requests
from rich.console import Console
from tests.promtool.backfill import backfill

from bench import report
from bench.cluster import NAMESPACE, Deployed, application, running_cluster, timestamp
from bench.traffic import Load, Probe, create_topic, keys_by_group
from streamgraft_autoscaler.forecast import BUCKET_SECONDS, DAY_BUCKETS, bucket_of
from streamgraft_common import names
from streamgraft_local import Cluster, ClusterSpec

JOB = "forecast"
REGIONS = ("with-history", "without-history")
MAX_WIDTH = 4
QUIET, SHOULDER, PEAK, DIP = 50.0, 120.0, 290.0, 60.0
"""Records/s; a channel can do 100."""
SCHEDULE = (
    ("quiet", 20.0, QUIET),
    ("shoulder", 45.0, SHOULDER),
    ("peak", 50.0, PEAK),
    ("dip", 75.0, DIP),
    ("peak again", 45.0, PEAK),
)
DAYS = 3
HIGH_BUCKETS = 24
SAMPLE_SECONDS = 60
WINDOW_SECONDS = 20
STARTING_SECONDS = 150.0
"""About so long after the past is written the job is ready for its rise."""
SETTLED_SECONDS = 20.0
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
        rate = PEAK if (bucket - rise) % DAY_BUCKETS < HIGH_BUCKETS else QUIET
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


def demand_inputs(cluster: Cluster, region: str) -> dict[str, Any] | None:
    """Return what the demand of a region was computed from, None as long as it has no value."""
    pki = cluster.home.pki
    name = names.region_name(JOB, region)
    answer = requests.get(
        f"{cluster.adapter_url}/api/v1/namespaces/{NAMESPACE}/regions/{name}",
        cert=(str(pki / "admin.crt"), str(pki / "admin.key")),
        verify=str(pki / "ca.crt"),
        timeout=30,
    )
    inputs: dict[str, Any] | None = answer.json()["signals"]["demand"].get("inputs")
    return inputs


async def known(cluster: Cluster) -> None:
    """Wait until it is known of both regions what a channel can do."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        for region in REGIONS:
            while True:
                inputs = await asyncio.to_thread(demand_inputs, cluster, region)
                if inputs and inputs["stages"]["0"]["load"]["capacity"]:
                    break
                await asyncio.sleep(1.0)
            forecast = inputs["surroundings"]["forecast"]
            error = f"error {forecast['error']:.1%}" if forecast else "none"
            console.print(f"{region}: forecast: {error}")


async def run(app: Deployed, load: Load, rise: int) -> float:
    """Send the load of the schedule, not before the quarter in which it rises; return its begin."""
    await known(app.cluster)
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
            "asked_s": round(timestamp(change["requestedAt"]) - begin, 1),
            "serving_s": round(timestamp(change["servingAt"]) - begin, 1),
        }
        for change in changes
        if change.get("servingAt") and timestamp(change["requestedAt"]) < begin + starts()["end"]
    ]


def figures(
    changes: list[dict[str, float]], probe: Probe, load: Load, begin: float
) -> dict[str, float]:
    """Return the figures of one region."""
    times = starts()
    ids = [number for number, sent_at in enumerate(load.sent_at) if sent_at >= begin]
    first = ids[0]
    delays = [item.at - load.sent_at[item.id] for item in probe.arrivals.items if item.id >= first]
    widest = [change for change in changes if change["to"] == MAX_WIDTH]
    found = {
        "changes": len(changes),
        "narrowed_in_dip": sum(
            change["to"] < change["from"]
            and times["dip"] <= change["asked_s"] < times["peak again"]
            for change in changes
        ),
        "delay_s_p50": report.percentile(delays, 0.5),
        "delay_s_p99": report.percentile(delays, 0.99),
        "delay_s_max": max(delays),
        "lost": probe.arrivals.lost(load.sent),
        "duplicated": probe.arrivals.duplicated(),
    }
    if widest:
        found["widest_asked_after_peak_began_s"] = widest[0]["asked_s"] - times["peak"]
        found["widest_served_after_peak_began_s"] = widest[0]["serving_s"] - times["peak"]
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
        "change_cost_seconds": 15,
        "metrics_window_seconds": WINDOW_SECONDS,
        "hpa_sync_seconds": ClusterSpec().hpa_sync_seconds,
        "changes": courses,
    }
    report.write("forecast-live", settings, found)


if __name__ == "__main__":
    asyncio.run(main())
