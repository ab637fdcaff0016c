"""What cuts cost: a job with a consistent region beside the same without one.

A PE that reads, and two channels with state that write to Kafka. First a load that leaves the
machine time, of which each record's time is told; then as much as the job can take.
"""

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path

from bench import report
from bench.cluster import Deployed, application
from bench.counts import Progress, wrong
from bench.range import KEYS, latencies
from bench.traffic import QUIET_SECONDS, Load, Probe, create_topic
from streamgraft_local import Cluster

RATE = 500.0
"""Records a second while latency is measured."""
WARM_SECONDS = 10.0
"""Before each of the two."""
MEASURED_SECONDS = 30.0
"""For latency; at least a period."""
SATURATED_SECONDS = 45.0
"""For throughput; at least a period."""
FEED_RATE, BACKLOG = 100_000.0, 100_000
"""So fast records are sent while fewer than so many wait, when as much as possible is to flow."""
LOOK_SECONDS = 0.1
REGION = "all"
TEMPLATE = Path(__file__).parent / "applications" / "cuts.py"


@dataclass(frozen=True)
class CostResult:
    """What a case showed."""

    latencies: list[float]
    """Seconds, of each record."""
    throughput: float
    """Records a second."""
    cuts: int
    """That became complete while throughput was measured."""
    lost: int
    duplicated: int

    def figures(self, case: str) -> dict[str, float]:
        """Return the figures by name."""
        return {
            f"latency_p50_s.{case}": round(report.percentile(self.latencies, 0.5), 3),
            f"latency_p99_s.{case}": round(report.percentile(self.latencies, 0.99), 3),
            f"records_per_s.{case}": round(self.throughput),
            f"cuts.{case}": self.cuts,
            f"lost.{case}": self.lost,
            f"duplicated.{case}": self.duplicated,
        }


def saturated_seconds(period: float) -> float:
    """Return how long throughput is measured with a cut once in a period."""
    return max(SATURATED_SECONDS, period)


async def costs(cluster: Cluster, folder: Path, name: str, period: float) -> CostResult:
    """Run a case on its own; `name`: of its job, `period`: seconds, 0 for no consistent region."""
    text = TEMPLATE.read_text().replace('NAME = "cuts"', f'NAME = "{name}"')
    source = folder / f"{name}.py"
    source.write_text(text.replace("PERIOD_SECONDS = 0.0", f"PERIOD_SECONDS = {period}"))
    servers = cluster.bootstrap_servers
    create_topic(servers, f"{name}-in", 1)
    async with application(cluster, source) as app:
        with Probe(servers, f"{name}-out", 2) as probe:
            progress = Progress(probe.arrivals)
            with Load(servers, f"{name}-in", KEYS, RATE) as load:
                took = await _latencies(load, probe, progress, period)
                await _feed(load, progress, WARM_SECONDS)
                before = await _cuts(app, period)
                throughput = await _throughput(load, progress, saturated_seconds(period))
                cuts = await _cuts(app, period) - before
            await _until(progress, load.sent)
        lost, duplicated = wrong(KEYS, load.sent, probe.arrivals.items)
    return CostResult(took, throughput, cuts, lost, duplicated)


async def _latencies(load: Load, probe: Probe, progress: Progress, period: float) -> list[float]:
    await asyncio.sleep(WARM_SECONDS)
    first = load.sent
    await asyncio.sleep(max(MEASURED_SECONDS, period))
    last = load.sent
    await _until(progress, last)
    return latencies(load.sent_at, probe.arrivals.items, first, last)


async def _throughput(load: Load, progress: Progress, seconds: float) -> float:
    """Return how many records a second flow when there are always more to read."""
    records, at = progress.records(), progress.at
    await _feed(load, progress, seconds)
    flowed = progress.records() - records
    load.rate = 0.0
    return flowed / (progress.at - at)


async def _feed(load: Load, progress: Progress, seconds: float) -> None:
    """Have records wait for so long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        load.rate = FEED_RATE if load.sent - progress.records() < BACKLOG else 0.0
        await asyncio.sleep(LOOK_SECONDS)


async def _until(progress: Progress, records: int) -> None:
    """Wait until so many came out, or nothing has for a while."""
    seen, quiet_since = -1, time.monotonic()
    while (now := progress.records()) < records and time.monotonic() - quiet_since < QUIET_SECONDS:
        if now != seen:
            seen, quiet_since = now, time.monotonic()
        await asyncio.sleep(LOOK_SECONDS)


async def _cuts(app: Deployed, period: float) -> int:
    if not period:
        return 0
    return (await app.consistent_region(REGION)).completed_sequence_id
