"""The metrics adapter under many regions: real Prometheus, API server, aggregator, HPA controller.

Only the PEs are hollow. Every region has an HPA with four metrics. Writes
`bench/results/adapter.json`.
"""

import asyncio
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import yaml

from bench import hollow_regions, https_load, report
from bench.cluster import running_cluster
from streamgraft_common import names
from streamgraft_common.kube import ApiError, KubeClient, load_config
from streamgraft_common.resources import PARALLEL_REGION
from streamgraft_local import Cluster

SIZES = (100, 1000, 5000)
METRICS = ("total_lag", "relative_lag_change_rate", "utilization", "demand")
CLIENTS = 16
INTERVAL_SECONDS = 15
"""Of scrapes and refreshes, Kubernetes' and Prometheus' habit; the window is 60 s."""
QUIET_SECONDS = 2 * INTERVAL_SECONDS + 5.0
LOAD_SECONDS = 2.0 * INTERVAL_SECONDS
"""Whole intervals, so that refreshes have their share of the requests."""
WRITERS = 16
UNUSED = ("operator", "node", "kafka", "kube-scheduler", "prometheus", "adapter")
_BASE = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{hollow_regions.NAMESPACE}"


def main() -> None:
    """Run the benchmark."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # clean up as after Ctrl-C
    with tempfile.TemporaryDirectory(prefix="streamgraft-bench-") as folder:
        figures = asyncio.run(_run(Path(folder)))
    settings = {
        "regions": list(SIZES),
        "partitions_per_region": hollow_regions.PARTITIONS,
        "metrics_per_hpa": len(METRICS),
        "clients": CLIENTS,
        "scrape_and_refresh_seconds": INTERVAL_SECONDS,
        "cores": os.cpu_count(),
    }
    report.write("adapter", settings, figures)


async def _run(folder: Path) -> dict[str, float]:
    figures: dict[str, float] = {}
    async with running_cluster(folder) as cluster:
        for name in UNUSED:
            await asyncio.to_thread(cluster.stop, name)
        exporter = cluster.state().ports["kafka"]
        with prometheus(cluster, folder, exporter) as asked, adapter(cluster) as served:
            async with KubeClient(load_config(cluster.kubeconfig)) as client:
                known = 0
                for count in SIZES:
                    with process(
                        sys.executable, "-m", "bench.hollow_regions", str(exporter), str(count)
                    ):
                        await create(client, range(known, count))
                        known = count
                        await until_served(client, count)
                        bench = _Bench(cluster, asked, served, count)
                        figures |= await asyncio.to_thread(bench.figures)
    largest = SIZES[-1]
    figures["requests_per_s"] = figures[f"direct_requests_per_s_{largest}"]
    figures["promql_per_refresh"] = figures[f"promql_per_refresh_{largest}"]
    return figures


class _Bench:
    """One size; all methods block."""

    def __init__(
        self, cluster: Cluster, prometheus: psutil.Process, adapter: psutil.Process, count: int
    ) -> None:
        self._cluster = cluster
        self._prometheus = prometheus
        self._adapter = adapter
        self._count = count

    def figures(self) -> dict[str, float]:
        """Measure: a quiet time in which only HPAs ask, then load in both ways."""
        found = self._quiet()
        found |= self._load("direct", self._cluster.adapter_url)
        found |= self._load("aggregated", self._cluster.api_url)
        found["rss_mb"] = self._adapter.memory_info().rss / 1e6
        return {f"{name}_{self._count}": value for name, value in found.items()}

    def _quiet(self) -> dict[str, float]:
        """Measure whole refreshes: from the end of one for two intervals."""
        ended = self._own_metrics()["refreshes"]
        while self._own_metrics()["refreshes"] == ended:
            time.sleep(0.5)
        before, cpu_before = self._own_metrics(), self._cpu()
        time.sleep(QUIET_SECONDS)
        after, cpu_after = self._own_metrics(), self._cpu()
        passed = {name: after[name] - before.get(name, 0.0) for name in after}
        refreshes = passed["refreshes"]
        return {
            "promql_per_refresh": passed["signal_queries"] / refreshes,
            "promql_per_s": passed["queries"] / QUIET_SECONDS,
            "refresh_s": passed["refresh_seconds"] / refreshes,
            "hpa_requests_per_s": passed["requests"] / QUIET_SECONDS,
            "adapter_cpu_s_per_minute": (cpu_after[0] - cpu_before[0]) * 60 / QUIET_SECONDS,
            "prometheus_cpu_s_per_minute": (cpu_after[1] - cpu_before[1]) * 60 / QUIET_SECONDS,
        }

    def _load(self, way: str, url: str) -> dict[str, float]:
        pki = self._cluster.home.pki
        paths = [path(number, metric) for number in range(self._count) for metric in METRICS]
        load = https_load.run(url, paths, pki / "admin", pki / "ca.crt", CLIENTS, LOAD_SECONDS)
        return {
            f"{way}_p50_ms": report.percentile(load.seconds, 0.5) * 1000,
            f"{way}_p99_ms": report.percentile(load.seconds, 0.99) * 1000,
            f"{way}_requests_per_s": len(load.seconds) / load.duration,
            f"{way}_failed": load.failed,
        }

    def _cpu(self) -> tuple[float, float]:
        times = [process.cpu_times() for process in (self._adapter, self._prometheus)]
        adapter, prometheus = (found.user + found.system for found in times)
        return adapter, prometheus

    def _own_metrics(self) -> dict[str, float]:
        context = load_config(self._cluster.kubeconfig).ssl_context()
        url = f"{self._cluster.adapter_url}/metrics"
        with urllib.request.urlopen(url, context=context) as answer:
            text = answer.read().decode()
        queries = "streamgraft_adapter_prometheus_queries_total"
        own = {
            # Those of the signals; once a minute one more reads what other replicas have learned,
            # once a quarter of an hour one what came in meanwhile.
            "signal_queries": rf'{queries}{{query="(?!learned"|days").*}}',
            "queries": rf"{queries}{{.*}}",
            "refreshes": r"streamgraft_adapter_refresh_duration_seconds_count",
            "refresh_seconds": r"streamgraft_adapter_refresh_duration_seconds_sum",
            "requests": r'streamgraft_adapter_request_duration_seconds_count{.*route="metric"}',
        }
        return {
            name: sum(map(float, re.findall(rf"^{pattern} (\S+)$", text, re.MULTILINE)))
            for name, pattern in own.items()
        }


def path(number: int, metric: str) -> str:
    """Return the path of a region's metric."""
    name = names.region_name(hollow_regions.job(number), "enrich")
    return f"{_BASE}/parallelregions.streamgraft.io/{name}/{metric}"


async def create(client: KubeClient, numbers: range) -> None:
    """Create regions that serve, and an HPA for each."""
    waiting = iter(numbers)

    async def writer() -> None:
        for number in waiting:
            await _create_one(client, hollow_regions.job(number))

    await asyncio.gather(*(writer() for _ in range(WRITERS)))


async def _create_one(client: KubeClient, job: str) -> None:
    namespace, name = hollow_regions.NAMESPACE, names.region_name(job, "enrich")
    spec = {
        "job": job,
        "region": "enrich",
        "width": 1,
        "maxWidth": hollow_regions.PARTITIONS,
        "key": ["k"],
    }
    await client.create(
        PARALLEL_REGION.path(namespace), PARALLEL_REGION.manifest(name, namespace, spec)
    )
    status = {"width": 1, "selector": f"{names.LABEL_JOB}={job}"}
    await client.patch(f"{PARALLEL_REGION.path(namespace, name)}/status", {"status": status})
    hpas = f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers"
    await client.create(hpas, _autoscaler(name))


def _autoscaler(name: str) -> dict[str, Any]:
    target = {
        "apiVersion": names.API_VERSION,
        "kind": PARALLEL_REGION.kind,
        "name": name,
    }
    metrics = [
        {
            "type": "Object",
            "object": {
                "describedObject": target,
                "metric": {"name": metric},
                "target": {"type": "AverageValue", "averageValue": "1000"},
            },
        }
        for metric in METRICS
    ]
    spec = {
        "scaleTargetRef": target,
        "minReplicas": 1,
        "maxReplicas": hollow_regions.PARTITIONS,
        "metrics": metrics,
    }
    return {"metadata": {"name": name}, "spec": spec}


async def until_served(client: KubeClient, count: int) -> None:
    """Wait until the last region has every metric: rates need a window of samples."""
    async with asyncio.timeout(240):
        for metric in METRICS:
            while True:
                try:
                    await client.get(path(count - 1, metric))
                    break
                except ApiError as error:
                    if error.code not in (404, 503):
                        raise
                await asyncio.sleep(1)


@contextmanager
def process(*command: str) -> Iterator[psutil.Process]:
    """A process, until the end of the context."""
    started = psutil.Popen(command, stdout=subprocess.DEVNULL)
    try:
        yield started
    finally:
        started.terminate()
        started.wait(30)


@contextmanager
def prometheus(
    cluster: Cluster, folder: Path, exporter: int, pod: int | None = None
) -> Iterator[psutil.Process]:
    """A Prometheus that scrapes hollow regions, and what is at the port of a pod."""
    file = folder / "prometheus.yml"
    interval = f"{INTERVAL_SECONDS}s"
    scrape = {
        "job_name": "hollow",
        "honor_labels": True,
        "static_configs": [{"targets": [f"127.0.0.1:{exporter}"]}],
    }
    others = [
        {
            "job_name": "streamgraft-pe",
            "static_configs": [
                {
                    "targets": [f"127.0.0.1:{port}"],
                    "labels": {"namespace": "noisy", "pod": "p", "pe": "p", "region": "r"},
                }
            ],
        }
        for port in (pod,)
        if port is not None
    ]
    document = {"global": {"scrape_interval": interval}, "scrape_configs": [scrape, *others]}
    file.write_text(yaml.safe_dump(document))
    state = cluster.state()
    command = (
        str(state.tools.prometheus),
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{state.ports['prometheus']}",
        "--log.level=warn",
    )
    with process(*command) as running:
        yield running


@contextmanager
def adapter(cluster: Cluster) -> Iterator[psutil.Process]:
    """The adapter in the place of the cluster's own, with Kubernetes' usual intervals."""
    pki, port = cluster.home.pki, cluster.state().ports["adapter"]
    command = (
        *(sys.executable, "-P", "-m", "streamgraft_metrics_adapter"),
        *("--kubeconfig", str(cluster.home.kubeconfig("adapter"))),
        *("--prometheus-url", cluster.prometheus_url),
        *("--bind", "127.0.0.1", "--port", str(port)),
        *("--tls-cert", str(pki / "adapter-serving.crt")),
        *("--tls-key", str(pki / "adapter-serving.key")),
        *("--refresh-seconds", str(INTERVAL_SECONDS)),
    )
    with process(*command) as running:
        yield running


if __name__ == "__main__":
    main()
