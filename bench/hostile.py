"""A noisy tenant beside others: what the adapter and the operator still do for them.

Real environment; only the regions' PEs are hollow. Each kind of noise is made for some seconds,
while the others' metrics are asked for and a Job is created and judged. Writes
`bench/results/hostile.json`: the worst ratios to the quiet time, the share of kinds that both
components survived with the others' metrics still served, and how many kinds there are.
"""

import asyncio
import os
import socket
import ssl
import statistics
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil

from bench import adapter, hollow_regions, https_load, report
from bench.cluster import running_cluster
from streamgraft_common.kube import KubeClient, NotFound, load_config
from streamgraft_common.resources import JOB, PARALLEL_REGION
from streamgraft_local import Cluster

REGIONS = 50
CLIENTS = 2
LOAD_SECONDS = 6.0
PROBES = 5
LONGEST_SECONDS = 30.0
"""Waited for a Job to be judged; who waits longer counts as that."""
UNUSED = ("node", "kafka", "kube-scheduler", "prometheus", "adapter")
EXPORTER, HOSTILE = "kafka", "kafka-controller"
"""Whose ports the hollow and the hostile exporter take."""
ATTEMPTS_PER_SECOND = 50.0
IDLE_CONNECTIONS = 600
JOBS = 24
NAMESPACE = "noisy"

Noise = Callable[["Place"], Any]


class Place:
    """Where noise is made."""

    def __init__(self, cluster: Cluster, exporter: int, hostile: int) -> None:
        self.cluster = cluster
        self.exporter, self.hostile = exporter, hostile
        self.address = ("127.0.0.1", int(cluster.adapter_url.rpartition(":")[2]))
        self.context = ssl.create_default_context(cafile=str(cluster.home.pki / "ca.crt"))

    def call(self, path: str, headers: dict[str, str]) -> None:
        """Send a request whose answer does not matter."""
        asked = urllib.request.Request(f"{self.cluster.adapter_url}{path}", headers=headers)
        try:
            with urllib.request.urlopen(asked, context=self.context, timeout=10) as answer:
                answer.read()
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            return

    def write(self, work: Callable[[KubeClient], Any]) -> None:
        """Do something at the API server."""

        async def done() -> None:
            async with KubeClient(load_config(self.cluster.kubeconfig)) as client:
                await work(client)

        asyncio.run(done())


def main() -> None:
    """Run the benchmark."""
    with tempfile.TemporaryDirectory(prefix="streamgraft-bench-") as folder:
        figures = asyncio.run(_run(Path(folder)))
    settings = {
        "regions": REGIONS,
        "seconds": LOAD_SECONDS,
        "jobs_judged": PROBES,
        "cores": os.cpu_count(),
    }
    report.write("hostile", settings, figures)


async def _run(folder: Path) -> dict[str, float]:
    async with running_cluster(folder) as cluster:
        for name in UNUSED:
            await asyncio.to_thread(cluster.stop, name)
        ports = cluster.state().ports
        place = Place(cluster, ports[EXPORTER], ports[HOSTILE])
        exporter = (sys.executable, "-m", "bench.hollow_regions", str(place.exporter), str(REGIONS))
        with (
            adapter.process(*exporter),
            adapter.prometheus(cluster, folder, place.exporter, place.hostile),
            adapter.adapter(cluster) as served,
        ):
            async with KubeClient(load_config(cluster.kubeconfig)) as client:
                await client.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
                await adapter.create(client, range(REGIONS))
                await adapter.until_served(client, REGIONS)
            return await asyncio.to_thread(_measured, place, served)


def _measured(place: Place, served: psutil.Process) -> dict[str, float]:
    quiet = _look(place)
    print(f"quiet: p99 {quiet[0]:.3f} s, judged in {quiet[1]:.2f} s, {quiet[2]} failed")
    figures: dict[str, float] = {
        "quiet_adapter_p99_ms": quiet[0] * 1000,
        "quiet_reconcile_ms": quiet[1] * 1000,
    }
    survived = 0
    for name, noise in KINDS.items():
        with noise(place):
            found = _look(place)
        figures[f"{name}_adapter_p99_ratio"] = found[0] / quiet[0]
        figures[f"{name}_reconcile_ratio"] = found[1] / quiet[1]
        survived += served.is_running() and not found[2] and found[1] < LONGEST_SECONDS
        print(f"{name}: p99 {found[0]:.3f} s, judged in {found[1]:.2f} s, {found[2]} failed")
    kinds = list(KINDS)
    figures["adapter_p99_ratio"] = max(figures[f"{name}_adapter_p99_ratio"] for name in kinds)
    figures["reconcile_ratio"] = max(figures[f"{name}_reconcile_ratio"] for name in kinds)
    return figures | {"survived": survived / len(kinds), "cases": len(kinds)}


def _look(place: Place) -> tuple[float, float, int]:
    """Return the adapter's p99, and the median until the operator judged a Job (seconds), and how
    many requests failed."""
    pki = place.cluster.home.pki
    paths = [adapter.path(number, "demand") for number in range(REGIONS)]
    url = place.cluster.adapter_url
    load = https_load.run(url, paths, pki / "admin", pki / "ca.crt", CLIENTS, LOAD_SECONDS)
    seconds = [asyncio.run(_judged(place.cluster)) for _ in range(PROBES)]
    return report.percentile(load.seconds, 0.99), statistics.median(seconds), load.failed


async def _judged(cluster: Cluster) -> float:
    """Return how long it takes until a Job without a bundle has a condition."""
    name = f"probe-{uuid.uuid4().hex[:8]}"
    spec = {"bundle": {"configMap": {"name": "there-is-none"}}}
    async with KubeClient(load_config(cluster.kubeconfig)) as client:
        began = time.perf_counter()
        await client.create(JOB.path("default"), JOB.manifest(name, "default", spec))
        while time.perf_counter() - began < LONGEST_SECONDS:
            found = await client.get(JOB.path("default", name))
            if (found.get("status") or {}).get("conditions"):
                break
            await asyncio.sleep(0.01)
        took = time.perf_counter() - began
        await client.delete(JOB.path("default", name))
    return took


@contextmanager
def _again_and_again(place: Place, work: Callable[[], None]) -> Iterator[None]:
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(1 / ATTEMPTS_PER_SECOND):
            work()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _unknown_tokens(place: Place) -> Any:
    def attempt() -> None:
        place.call("/apis/custom.metrics.k8s.io", {"Authorization": f"Bearer {uuid.uuid4()}"})

    return _again_and_again(place, attempt)


@contextmanager
def _idle_connections(place: Place) -> Iterator[None]:
    with ExitStack() as stack:
        for number in range(IDLE_CONNECTIONS):
            plain = socket.create_connection(place.address, 30, ("127.0.0.8", 0))
            stack.enter_context(plain)
            if number % 2:
                stack.enter_context(place.context.wrap_socket(plain, server_hostname="127.0.0.1"))
        yield


def _metrics(place: Place) -> Any:
    return adapter.process(sys.executable, "-m", "bench.hostile_exporter", str(place.hostile))


@contextmanager
def _regions(place: Place) -> Iterator[None]:
    odd: list[dict[str, Any]] = [
        {"maxCostPerHour": 1e308, "channelCostPerHour": 1e-308},
        {"periods": [{"start": "00:00", "end": "00:00", "timeZone": "America"}]},
        {"catchUpSeconds": 5e-324, "overshoot": 1e308},
    ]
    path = PARALLEL_REGION.path(NAMESPACE)

    async def create(client: KubeClient) -> None:
        for number in range(JOBS):
            spec = {"job": hollow_regions.job(number), "region": "enrich", "width": 1}
            spec |= {"maxWidth": 2, "key": ["k"], "autoscaling": odd[number % len(odd)]}
            await client.create(path, PARALLEL_REGION.manifest(f"odd-{number}", NAMESPACE, spec))

    async def delete(client: KubeClient) -> None:
        for number in range(JOBS):
            await client.delete(f"{path}/odd-{number}")

    place.write(create)
    yield
    place.write(delete)


@contextmanager
def _silent_bundles(place: Place) -> Iterator[None]:
    """Jobs whose bundles are at an address that takes connections and never answers."""
    silent = socket.create_server(("127.0.0.1", 0), backlog=128)
    url = f"http://127.0.0.1:{silent.getsockname()[1]}/bundle.zip"
    path = JOB.path(NAMESPACE)

    async def create(client: KubeClient) -> None:
        for number in range(JOBS):
            spec = {"bundle": {"url": url}}
            await client.create(path, JOB.manifest(f"silent-{number}", NAMESPACE, spec))

    async def delete(client: KubeClient) -> None:
        for number in range(JOBS):
            try:
                await client.delete(f"{path}/silent-{number}")
            except NotFound:
                continue

    with silent:
        place.write(create)
        yield
        place.write(delete)


KINDS: dict[str, Noise] = {
    "unknown_tokens": _unknown_tokens,
    "idle_connections": _idle_connections,
    "metrics": _metrics,
    "regions": _regions,
    "silent_bundles": _silent_bundles,
}


if __name__ == "__main__":
    main()
