"""A region that sleeps: how long from a record to its first output, with and without a warm pool.

`make bench-scale-to-zero`: the HPA puts a region to sleep when no record has come for the metrics'
window; then one record is sent. The operator reads the lag from Kafka, Prometheus scrapes it, the
adapter asks Prometheus, the HPA asks the adapter, a pod starts. Everything is real.
"""

import asyncio
import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Producer
from rich.console import Console

from bench import report
from bench.cluster import Deployed, application, running_cluster
from bench.traffic import Probe, create_topic
from streamgraft_common.timestamps import from_rfc3339
from streamgraft_local import ClusterSpec

WAKE_UPS = 3
"""Of each case."""
CASES = {"warm": 1, "cold": 0}
"""Sizes of the warm pool."""
WINDOW_SECONDS = 20
"""Of the metrics: shorter than the default, so that regions fall asleep sooner."""
PATIENCE_SECONDS = 300.0
REGION = "work"
OUTPUTS = 2

console = Console()


@dataclass(frozen=True)
class WakeUp:
    """Seconds from the record: until the operator saw the new width, and until the output."""

    case: str
    noticed: float
    output: float


async def asleep(app: Deployed) -> None:
    """Wait until the region has no channels, and nothing of it is left."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            status = (await app.region(REGION)).get("status", {})
            states = {item["type"]: item["status"] for item in status.get("conditions", [])}
            if states.get("Asleep") == "True" and states.get("Resizing") == "False":
                return
            await asyncio.sleep(0.2)


async def woken(case: str, app: Deployed, producer: Producer, probe: Probe, number: int) -> WakeUp:
    """Send a record to the region, which sleeps, and wait for its output."""
    sent = time.time()
    producer.produce("bench-in-sleepy", json.dumps({"id": number, "key": "a"}), "a")
    producer.flush(30)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while probe.arrivals.newest_id() < number:
            await asyncio.sleep(0.02)
    output = next(item.at for item in probe.arrivals.items if item.id == number)
    change = (await app.region(REGION))["status"]["changes"][-1]
    return WakeUp(case, from_rfc3339(change["requestedAt"]) - sent, output - sent)


async def measure(app: Deployed, servers: str, probe: Probe) -> list[WakeUp]:
    """Let the region sleep and wake up, again and again, in each case."""
    producer = Producer({"bootstrap.servers": servers})
    found: list[WakeUp] = []
    for case, size in CASES.items():
        await app.set_warm_pool(size)
        for _ in range(WAKE_UPS):
            await asleep(app)
            await app.calm(size)
            found.append(await woken(case, app, producer, probe, len(found)))
            console.print(f"{case}: noticed {found[-1].noticed:.1f} s, {found[-1].output:.1f} s")
    return found


def figures(wake_ups: list[WakeUp], lost: int, duplicated: int) -> dict[str, float]:
    """Return the figures by name."""
    found: dict[str, float] = {}
    for case in CASES:
        seconds = [item.output for item in wake_ups if item.case == case]
        found[f"wake_up_s_p50.{case}"] = round(report.percentile(seconds, 0.5), 1)
        found[f"wake_up_s_max.{case}"] = round(max(seconds), 1)
    noticed = [item.noticed for item in wake_ups]
    found["noticed_s_p50"] = round(report.percentile(noticed, 0.5), 1)
    return found | {"wake_ups": len(wake_ups), "lost": lost, "duplicated": duplicated}


async def main() -> None:
    """Wake up on a fresh embedded environment."""
    with tempfile.TemporaryDirectory(prefix="streamgraft-bench-") as folder:
        async with running_cluster(Path(folder), WINDOW_SECONDS) as cluster:
            servers = cluster.bootstrap_servers
            create_topic(servers, "bench-in-sleepy", 1)
            source = Path(__file__).parent / "applications" / "sleepy.py"
            async with application(cluster, source) as app:
                with Probe(servers, "bench-out-sleepy", OUTPUTS) as probe:
                    wake_ups = await measure(app, servers, probe)
                    await probe.drained(len(wake_ups))
                lost, duplicated = probe.arrivals.lost(len(wake_ups)), probe.arrivals.duplicated()
    settings = {
        "wake_ups_per_case": WAKE_UPS,
        "scrape_seconds": ClusterSpec().scrape_seconds,
        "hpa_sync_seconds": ClusterSpec().hpa_sync_seconds,
        "metrics_window_seconds": WINDOW_SECONDS,
        "trigger_seconds": 0.5,
    }
    report.write("scale-to-zero", settings, figures(wake_ups, lost, duplicated))


if __name__ == "__main__":
    asyncio.run(main())
