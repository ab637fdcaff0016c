"""Streams between jobs, 500 exports and 500 imports: `make bench-import-export`.

One pair of jobs is real, the others hollow (`hollow_streams`); control plane, operator and Kafka
are real. While some of the others' properties change every second, the real connection is unmade
and made again. It flows once a record has come out of the importing job.
Writes `bench/results/import-export.json`.
"""

import asyncio
import os
import random
import tempfile
import time
from pathlib import Path

import psutil
from rich.console import Console

from bench import report
from bench.cluster import NAMESPACE, application, running_cluster
from bench.hollow_streams import HollowStreams
from bench.traffic import Load, Probe, create_topic
from streamgraft_common import names
from streamgraft_common.kube import KubeClient, load_config
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import EXPORT, IMPORT
from streamgraft_local import Cluster

EXPORTS = 500
RATE = 100.0
"""Records a second of the real pair."""
CHANGES_PER_SECOND = 5.0
"""Of the others."""
ROUNDS = 100
APART_SECONDS = 1.0
IDLE_SECONDS = 65.0
"""How long idle CPU is measured: a resync of the operator is in it."""
PATIENCE_SECONDS = 60.0
SETTLED_SECONDS = 10.0
UNUSED = ("prometheus", "adapter")

console = Console()


class Pair:
    """The connection of the two real jobs."""

    def __init__(self, client: KubeClient, probe: Probe) -> None:
        self._client = client
        self._probe = probe

    async def flowing(self) -> float:
        """Unmake the connection and make it again; return the seconds from then to a record."""
        await self._publish(0)
        await self._until_connected(False)
        await asyncio.sleep(APART_SECONDS)
        arrivals = self._probe.arrivals.items
        seen, began = len(arrivals), time.time()
        await self._publish(1)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(arrivals) == seen:
                await asyncio.sleep(0.002)
        return arrivals[seen].at - began

    async def connected(self) -> None:
        """Wait until the importing job reads."""
        await self._until_connected(True)

    async def _publish(self, shared: int) -> None:
        path = EXPORT.path(NAMESPACE, names.shared_stream("exporting", "records-export"))
        await self._client.patch(path, {"spec": {"properties": {"shared": shared}}})

    async def _until_connected(self, wanted: bool) -> None:
        path = IMPORT.path(NAMESPACE, names.shared_stream("importing", "records"))
        async with asyncio.timeout(PATIENCE_SECONDS):
            while bool(_exports(await self._client.get(path))) != wanted:
                await asyncio.sleep(0.02)


def _exports(item: Object) -> list[str]:
    return list((item.get("status") or {}).get("exports", ()))


class Operator:
    """What the operator's process needs."""

    def __init__(self, cluster: Cluster) -> None:
        (pid,) = [item.pid for item in cluster.status() if item.name == "operator"]
        self._process = psutil.Process(pid)

    def rss_mb(self) -> float:
        """Return its memory."""
        return float(self._process.memory_info().rss) / 2**20

    def cpu_seconds(self) -> float:
        """Return its CPU time since its start."""
        times = self._process.cpu_times()
        return float(times.user + times.system)

    async def cpu_percent(self, seconds: float) -> float:
        """Return its CPU over some time, in percent of one core."""
        before, began = self.cpu_seconds(), time.monotonic()
        await asyncio.sleep(seconds)
        return 100 * (self.cpu_seconds() - before) / (time.monotonic() - began)


async def measure(cluster: Cluster, client: KubeClient) -> dict[str, float]:
    """Connect, change, and count."""
    operator = await asyncio.to_thread(Operator, cluster)
    before = operator.rss_mb()
    hollow = HollowStreams(client, EXPORTS - 1, random.Random(1))
    began = time.monotonic()
    await hollow.create()
    count = -1
    while count != (count := await hollow.connected()) or not count:
        await asyncio.sleep(SETTLED_SECONDS)
    console.print(f"{count} connections after {time.monotonic() - began:.0f} s")
    figures = {"connections": float(count), "broker_idle_cpu_percent": 0.0}
    figures["broker_idle_cpu_percent"] = await operator.cpu_percent(IDLE_SECONDS)
    with (
        Probe(cluster.bootstrap_servers, "bench-out-shared", 1) as probe,
        Load(cluster.bootstrap_servers, "bench-in-shared", ["k"], RATE) as load,
    ):
        pair = Pair(client, probe)
        await pair.connected()
        changing = asyncio.create_task(hollow.run(CHANGES_PER_SECOND))
        cpu, start = operator.cpu_seconds(), time.monotonic()
        seconds = [await pair.flowing() for _ in range(ROUNDS)]
        cpu = 100 * (operator.cpu_seconds() - cpu) / (time.monotonic() - start)
        changing.cancel()
        await asyncio.gather(changing, return_exceptions=True)
        load.rate = 0.0
        await asyncio.sleep(0.5)
        await probe.drained(load.sent)
        lost, duplicated = probe.arrivals.lost(load.sent), probe.arrivals.duplicated()
    return figures | {
        "flowing_s_p50": report.percentile(seconds, 0.5),
        "flowing_s_p99": report.percentile(seconds, 0.99),
        "told_s_p50": report.percentile(hollow.told, 0.5),
        "told_s_p99": report.percentile(hollow.told, 0.99),
        "told": len(hollow.told),
        "broker_cpu_percent": cpu,
        "broker_rss_mb": operator.rss_mb() - before,
        "operator_rss_mb": operator.rss_mb(),
        "lost": lost,
        "duplicated": duplicated,
    }


async def main() -> None:
    """Measure on a fresh embedded environment."""
    applications = Path(__file__).parent / "applications"
    with tempfile.TemporaryDirectory(prefix="streamgraft-bench-") as folder:
        async with running_cluster(Path(folder)) as cluster:
            for name in UNUSED:
                await asyncio.to_thread(cluster.stop, name)
            create_topic(cluster.bootstrap_servers, "bench-in-shared", 1)
            async with (
                application(cluster, applications / "exporting.py"),
                application(cluster, applications / "importing.py"),
                KubeClient(load_config(cluster.kubeconfig)) as client,
            ):
                figures = await measure(cluster, client)
    settings = {
        "exports": EXPORTS,
        "imports": EXPORTS,
        "rounds": ROUNDS,
        "rate": RATE,
        "changes_per_second": CHANGES_PER_SECOND,
        "trigger_seconds": 0.1,
        "cores": os.cpu_count(),
    }
    report.write("import-export", settings, {name: round(it, 3) for name, it in figures.items()})


if __name__ == "__main__":
    asyncio.run(main())
