"""One hop between two PEs, beside a bare Kafka client: `make bench-throughput`.

Figure 8 of "Cloud native IBM Streams" (000): throughput by the size of a record, 1 byte to 4 MB,
and latency beside it; in micro-batches and in real-time mode, with the sinks' default: exactly
once. The first PE reads an outside topic and writes the topic between them, the second reads that
and writes what it has seen. The bare client writes and reads a topic, in the same run. Everything
is real. Writes `bench/results/throughput.json` and `docs/images/throughput-*.svg`.
"""

import asyncio
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.console import Console

from bench import report
from bench.cluster import NAMESPACE, application, running_cluster
from bench.hop_traffic import Reader, Sender, create_topic, reading
from bench.size_plot import Points, size_plot, size_text
from streamgraft_common import names

SIZES = (1, 64, 1024, 16 * 1024, 256 * 1024, 1024 * 1024, 4 * 1024 * 1024)
"""Of the payload, bytes."""
MOST_RECORDS, MOST_BYTES, LEAST_RECORDS = 200_000, 256 * 2**20, 48
"""Of a burst, whose throughput is measured."""
PACED, PACE, PACED_BYTES = 200, 50.0, 8 * 2**20
"""Records of which latency is measured, and how many and how much come in a second at most."""
WARM_UP = 2_000
MODES = {"micro-batch": "hopbatches", "real-time": "hoprealtime"}
BETWEEN = {"micro-batch": "records", "real-time": "sent"}
"""Stream between the PEs."""
UNUSED = ("prometheus", "adapter")
PLOTS = Path(__file__).parents[1] / "docs" / "images"

console = Console()
Curves = dict[str, dict[str, list[tuple[float, float]]]]


def burst_of(size: int) -> int:
    """Return how many records of a size are sent at once."""
    return max(LEAST_RECORDS, min(MOST_RECORDS, MOST_BYTES // size))


def pace_of(size: int) -> float:
    """Return how many records of a size are sent in a second where latency is measured."""
    return min(PACE, PACED_BYTES / size)


def rate(sender: Sender, ids: range, came: dict[int, float]) -> float:
    """Return records a second, from the moment when the first was sent until the last came."""
    return len(ids) / (max(came[number] for number in ids) - sender.sent_at[ids[0]])


def measure_bare(servers: str, curves: Curves) -> None:
    """Measure a producer and a consumer alone."""
    create_topic(servers, "bench-bare")
    sender = Sender(servers, "bench-bare")
    for size in SIZES:
        with reading(servers, "bench-bare") as reader:
            ids = sent_and_read(sender, reader, size, burst_of(size))
            throughput = rate(sender, ids, reader.received)
        with reading(servers, "bench-bare") as reader:
            ids = _paced(sender, reader, size)
            delays = [reader.received[number] - sender.sent_at[number] for number in ids]
        _note(curves, "bare Kafka client", size, throughput, delays)


async def measure_job(servers: str, job: str, mode: str, curves: Curves) -> int:
    """Measure a job that runs; return how many records came twice."""
    between, out = names.topic(NAMESPACE, job, BETWEEN[mode], "far"), f"bench-out-{job}"
    sender = Sender(servers, f"bench-in-{job}")
    doubled = 0
    with reading(servers, out) as reader:
        await asyncio.to_thread(sent_and_read, sender, reader, 64, WARM_UP)
    for size in SIZES:
        with reading(servers, out) as reader:
            ids = await asyncio.to_thread(sent_and_read, sender, reader, size, burst_of(size))
            throughput = rate(sender, ids, reader.written)
            doubled += reader.doubled
        with (
            reading(servers, between) as sent,
            reading(servers, out) as reader,
        ):
            ids = await asyncio.to_thread(_paced, sender, reader, size)
            await asyncio.to_thread(sent.until, ids)
            delays = [reader.written[number] - sent.written[number] for number in ids]
            doubled += reader.doubled
        _note(curves, mode, size, throughput, delays)
    return doubled


def _paced(sender: Sender, reader: Reader, size: int) -> range:
    pace = pace_of(size)
    return sent_and_read(sender, reader, size, min(PACED, max(20, int(8 * pace))), pace)


def sent_and_read(
    sender: Sender, reader: Reader, size: int, count: int, pace: float | None = None
) -> range:
    """Send records while they are read; return their ids."""
    ids = sender.next(count)
    with ThreadPoolExecutor(1) as threads:
        sending = threads.submit(sender.send, size, count, pace)
        reader.until(ids)
        sending.result()
    return ids


def _note(curves: Curves, mode: str, size: int, throughput: float, delays: list[float]) -> None:
    p50, p99 = (1000 * report.percentile(delays, share) for share in (0.5, 0.99))
    found = {
        "records_per_s": throughput,
        "mb_per_s": throughput * size / 1e6,
        "latency_ms_p50": max(p50, 0.1),
        "latency_ms_p99": max(p99, 0.1),
    }
    for name, value in found.items():
        curves.setdefault(name, {}).setdefault(mode, []).append((float(size), value))
    told = ", ".join(f"{name} {value:,.4g}" for name, value in found.items())
    console.print(f"{mode}, {size_text(size)}: {told}")


def figures(curves: Curves) -> dict[str, float]:
    """Return all points by name, mode and size in bytes."""
    return {
        f"{name}.{mode.replace(' ', '_')}.{size:.0f}_b": round(value, 3)
        for name, lines in curves.items()
        for mode, points in lines.items()
        for size, value in points
    }


def draw(curves: Curves) -> None:
    """Write the pictures."""
    throughput: dict[str, Points] = dict(curves["mb_per_s"])
    picture = size_plot("Throughput over one hop", "MB/s of payload", throughput)
    (PLOTS / "throughput-hop.svg").write_text(picture)
    latency: dict[str, Points] = dict(curves["latency_ms_p50"])
    picture = size_plot("Latency over one hop, median", "ms", latency)
    (PLOTS / "throughput-latency.svg").write_text(picture)


async def main() -> None:
    """Measure on a fresh embedded environment."""
    applications = Path(__file__).parent / "applications"
    curves: Curves = {}
    doubled = 0
    with tempfile.TemporaryDirectory(prefix="streamgraft-bench-") as folder:
        async with running_cluster(Path(folder)) as cluster:
            for name in UNUSED:
                await asyncio.to_thread(cluster.stop, name)
            servers = cluster.bootstrap_servers
            await asyncio.to_thread(measure_bare, servers, curves)
            for mode, job in MODES.items():
                create_topic(servers, f"bench-in-{job}")
                async with application(cluster, applications / f"{job}.py"):
                    doubled += await measure_job(servers, job, mode, curves)
    draw(curves)
    settings = {
        "sizes": list(SIZES),
        "most_records": MOST_RECORDS,
        "most_bytes": MOST_BYTES,
        "records_paced": PACED,
        "trigger_seconds": 0.1,
        "delivery": "exactly_once",
        "cores": os.cpu_count(),
    }
    report.write("throughput", settings, figures(curves) | {"doubled": float(doubled)})


if __name__ == "__main__":
    asyncio.run(main())
