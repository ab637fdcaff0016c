"""An embedded environment for a benchmark, and an application that runs in it."""

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import requests

from streamgraft_common import names
from streamgraft_common.conditions import is_ready
from streamgraft_common.kube import KubeClient, load_config
from streamgraft_common.kube.client import MergePatch, Object
from streamgraft_common.resources import (
    CONSISTENT_REGION,
    JOB,
    PARALLEL_REGION,
    PROCESSING_ELEMENT,
    ConsistentRegionStatus,
)
from streamgraft_common.resources.job import JobStatus, WarmPool, WarmPoolStatus
from streamgraft_common.resources.parallel_region import Strategy
from streamgraft_local import Cluster, ClusterSpec, Display

NAMESPACE = "default"
CALM_TIMEOUT_SECONDS = 300.0
WARM_POD_SECONDS = 40.0
"""Pods of a pool start one after the other, as CPU is short."""
SAME_POOL_SECONDS = 20.0
"""Longer than the operator waits before it fills a pool."""
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"


class Deployed:
    """A job that runs and is healthy."""

    def __init__(self, cluster: Cluster, client: KubeClient, job: str) -> None:
        self.cluster = cluster
        self.job = job
        self._client = client

    async def region(self, region: str) -> Object:
        """Return the ParallelRegion of a region."""
        return await self._client.get(self._path(region))

    async def scale(self, region: str, width: int) -> None:
        """Set the width the way the HorizontalPodAutoscaler does."""
        await self._client.patch(f"{self._path(region)}/scale", {"spec": {"replicas": width}})

    async def neighbours(self) -> dict[str, tuple[str, int]]:
        """Return uid and restarts of every pod outside of regions, by name."""
        pods = await self._list(_PODS, f",!{names.LABEL_REGION},{names.LABEL_PE}")
        return {pod["metadata"]["name"]: _life(pod) for pod in pods}

    async def pods(self) -> dict[str, tuple[str, int]]:
        """Return uid and restarts of the pod of every PE, by the PE's name."""
        pods = await self._list(_PODS, f",{names.LABEL_PE}")
        return {pod["metadata"]["labels"][names.LABEL_PE]: _life(pod) for pod in pods}

    async def drivers(self) -> list[Object]:
        """Return all pods of the job, those of its warm pool included."""
        return await self._list(_PODS)

    async def pes(self) -> list[Object]:
        """Return the ProcessingElements, in the order of their names."""
        found = await self._list(PROCESSING_ELEMENT.path(NAMESPACE))
        return sorted(found, key=lambda item: item["metadata"]["name"])

    async def pod(self, name: str) -> Object:
        """Return a pod."""
        return await self._client.get(f"{_PODS}/{name}")

    async def consistent_region(self, region: str) -> ConsistentRegionStatus:
        """Return how far a consistent region is."""
        path = CONSISTENT_REGION.path(NAMESPACE, names.region_name(self.job, region))
        found = await self._client.get(path)
        return ConsistentRegionStatus.model_validate(found.get("status") or {})

    async def set_warm_pool(self, size: WarmPool) -> None:
        """Set the size of the warm pool."""
        await self._client.patch(JOB.path(NAMESPACE, self.job), {"spec": {"warmPool": size}})

    async def set_strategy(self, region: str, strategy: Strategy) -> None:
        """Set how a region changes its width."""
        regions = {region: {"strategy": strategy}}
        await self._client.patch(JOB.path(NAMESPACE, self.job), {"spec": {"regions": regions}})

    async def calm(self, warm_pool: int) -> None:
        """Wait until the job is healthy and so many pods of its pool are warm."""
        async with asyncio.timeout(CALM_TIMEOUT_SECONDS + warm_pool * WARM_POD_SECONDS):
            while not (await self._is_healthy() and await self._warm() == warm_pool):
                await asyncio.sleep(0.2)

    async def pool_filled(self) -> int:
        """Wait until the job is healthy and as many drivers are warm as its pool should have, whose
        size is the operator's to choose, for a while; return that size."""
        filled, since = 0, time.monotonic()
        async with asyncio.timeout(CALM_TIMEOUT_SECONDS):
            while True:
                told = await self._pool_told()
                if not told or told.size != await self._warm() or told.size != filled:
                    filled, since = told.size if told else 0, time.monotonic()
                elif filled and time.monotonic() - since > SAME_POOL_SECONDS:
                    return filled
                await asyncio.sleep(0.5)

    async def signals(self, region: str) -> dict[str, Any]:
        """Return the signals of a region, with their inputs, as the adapter serves them."""
        return await asyncio.to_thread(self._signals, names.region_name(self.job, region))

    async def settled(self, region: str, few: float) -> None:
        """Wait until a region has one channel, fewer than `few` records wait, and it is known what
        a channel can do."""
        while True:
            found = await self.signals(region)
            inputs, lag = found["demand"].get("inputs"), found["total_lag"].get("value")
            known = inputs and inputs["stages"]["0"]["load"]["capacity"] and lag is not None
            if known and inputs["surroundings"]["width"] == 1 and lag < few:
                return
            await asyncio.sleep(2.0)

    def _signals(self, name: str) -> dict[str, Any]:
        pki = self.cluster.home.pki
        answer = requests.get(
            f"{self.cluster.adapter_url}/api/v1/namespaces/{NAMESPACE}/regions/{name}",
            cert=(str(pki / "admin.crt"), str(pki / "admin.key")),
            verify=str(pki / "ca.crt"),
            timeout=30,
        )
        found: dict[str, Any] = answer.json()["signals"]
        return found

    async def _is_healthy(self) -> bool:
        return (await self._status()).phase == "Healthy"

    async def _pool_told(self) -> WarmPoolStatus | None:
        """Return how large the pool of a healthy job should be."""
        status = await self._status()
        return status.warm_pool if status.phase == "Healthy" else None

    async def _status(self) -> JobStatus:
        job = await self._client.get(JOB.path(NAMESPACE, self.job))
        return JobStatus.model_validate(job.get("status") or {})

    async def _warm(self) -> int:
        return sum(map(is_ready, await self._pool()))

    async def _pool(self) -> list[Object]:
        return await self._list(_PODS, f",{names.LABEL_POOL}={names.POOL_WARM}")

    async def _list(self, path: str, further_selector: str = "") -> list[Object]:
        selector = f"{names.LABEL_JOB}={self.job}{further_selector}"
        items: list[Object] = (await self._client.get(path, labelSelector=selector))["items"]
        return items

    def _path(self, region: str) -> str:
        return PARALLEL_REGION.path(NAMESPACE, names.region_name(self.job, region))


def _life(pod: Object) -> tuple[str, int]:
    containers = pod["status"].get("containerStatuses", [])
    return pod["metadata"]["uid"], sum(item["restartCount"] for item in containers)


async def command(cluster: Cluster, *arguments: str) -> None:
    """Run the `streamgraft` command against the cluster. Raises CalledProcessError."""
    program = str(Path(sys.executable).with_name("streamgraft"))
    process = await asyncio.create_subprocess_exec(
        program, "--kubeconfig", str(cluster.kubeconfig), *arguments
    )
    if code := await process.wait():
        raise subprocess.CalledProcessError(code, [program, *arguments])


@asynccontextmanager
async def running_cluster(
    folder: Path, metrics_window_seconds: int = ClusterSpec().metrics_window_seconds
) -> AsyncIterator[Cluster]:
    """Bring a fresh environment up in `folder`, and take it down whatever happens.

    SIGTERM cancels the calling task, so that nothing is left running then either.
    """
    if task := asyncio.current_task():
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    spec = ClusterSpec(name="bench", base=folder, metrics_window_seconds=metrics_window_seconds)
    cluster = Cluster(spec)
    try:
        with Display() as display:
            starting = asyncio.create_task(asyncio.to_thread(cluster.up, display.report))
            try:
                await asyncio.shield(starting)
            finally:  # its thread can't be interrupted: what it still starts has to go as well
                await asyncio.wait({starting})
        yield cluster
    finally:
        await asyncio.to_thread(cluster.down, delete=True)


@asynccontextmanager
async def application(
    cluster: Cluster, source: Path, spec: MergePatch | None = None
) -> AsyncIterator[Deployed]:
    """Submit an application, wait until it is healthy, and cancel it at the end.

    `spec`: what its Job has beside the bundle.
    """
    job = source.stem
    await command(cluster, "submit", str(source))
    try:
        async with KubeClient(load_config(cluster.kubeconfig)) as client:
            await client.patch(JOB.path(NAMESPACE, job), {"spec": spec or {}})
            app = Deployed(cluster, client, job)
            await app.calm(warm_pool=0)
            yield app
    finally:
        await command(cluster, "cancel", job)
