"""An embedded environment for a benchmark, and an application that runs in it."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

from streamgraft_common import names
from streamgraft_common.kube import KubeClient, load_config
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import PARALLEL_REGION
from streamgraft_local import Cluster, ClusterSpec, Display

NAMESPACE = "default"


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
        pods = await self._client.get(
            f"/api/v1/namespaces/{NAMESPACE}/pods",
            labelSelector=f"{names.LABEL_JOB}={self.job},!{names.LABEL_REGION}",
        )
        return {
            pod["metadata"]["name"]: (
                pod["metadata"]["uid"],
                sum(item["restartCount"] for item in pod["status"].get("containerStatuses", [])),
            )
            for pod in pods["items"]
        }

    def _path(self, region: str) -> str:
        return PARALLEL_REGION.path(NAMESPACE, names.region_name(self.job, region))


def timestamp(text: str) -> float:
    """Return an RFC 3339 time as seconds since the epoch."""
    return datetime.fromisoformat(text).timestamp()


async def command(cluster: Cluster, *arguments: str) -> None:
    """Run the `streamgraft` command against the cluster. Raises CalledProcessError."""
    program = str(Path(sys.executable).with_name("streamgraft"))
    process = await asyncio.create_subprocess_exec(
        program, "--kubeconfig", str(cluster.kubeconfig), *arguments
    )
    if code := await process.wait():
        raise subprocess.CalledProcessError(code, [program, *arguments])


@asynccontextmanager
async def running_cluster(folder: Path) -> AsyncIterator[Cluster]:
    """Bring a fresh environment up in `folder`, and take it down whatever happens.

    SIGTERM cancels the calling task, so that nothing is left running then either.
    """
    if task := asyncio.current_task():
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    cluster = Cluster(ClusterSpec(name="bench", base=folder))
    try:
        with Display() as display:
            await asyncio.to_thread(cluster.up, display.report)
        yield cluster
    finally:
        await asyncio.to_thread(cluster.down, delete=True)


@asynccontextmanager
async def application(cluster: Cluster, source: Path) -> AsyncIterator[Deployed]:
    """Submit an application, wait until it is healthy, and cancel it at the end."""
    await command(cluster, "submit", str(source), "--wait")
    try:
        async with KubeClient(load_config(cluster.kubeconfig)) as client:
            yield Deployed(cluster, client, source.stem)
    finally:
        await command(cluster, "cancel", source.stem)
