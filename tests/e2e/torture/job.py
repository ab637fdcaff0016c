"""A job whose parts die, as its user sees it: submitted, scaled, and waited for."""

import asyncio
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.e2e.torture.patience import answered

from bench.cluster import command
from streamgraft_common import names
from streamgraft_common.conditions import find
from streamgraft_common.kube import KubeClient
from streamgraft_common.resources import JOB, PARALLEL_REGION, ParallelRegionStatus
from streamgraft_local import Cluster

SUBMISSIONS = 10
_POLL_SECONDS = 0.1


class NotServing(Exception):
    """What was asked for did not come to its end in time."""


class TorturedJob:
    """A job with one parallel region, in a namespace."""

    def __init__(
        self, cluster: Cluster, client: KubeClient, namespace: str, name: str, region: str
    ) -> None:
        self.cluster = cluster
        self.client = client
        self.namespace = namespace
        self.name = name
        self.path = JOB.path(namespace, name)
        self._region = PARALLEL_REGION.path(namespace, names.region_name(name, region))

    async def submit(self, source: Path, *options: str) -> None:
        """Submit a form of the application; brokers and API servers may be away.

        Raises CalledProcessError if that fails again and again.
        """
        for left in reversed(range(SUBMISSIONS)):
            try:
                await command(
                    self.cluster, "submit", str(source), "--namespace", self.namespace, *options
                )
                return
            except subprocess.CalledProcessError:
                if not left:
                    raise
                await asyncio.sleep(1.0)

    async def cancel(self) -> None:
        """Cancel it."""
        await command(self.cluster, "cancel", self.name, "--namespace", self.namespace)

    async def patch(self, spec: Mapping[str, object]) -> int:
        """Set fields of the Job's spec; return its generation."""
        job = await answered(lambda: self.client.patch(self.path, {"spec": spec}))
        return int(job["metadata"]["generation"])

    async def apply(self, spec: Mapping[str, object], seconds: float) -> None:
        """Set fields of the Job's spec, and wait until it is healthy with them."""
        generation = await self.patch(spec)
        async with asyncio.timeout(seconds):
            while not await self._has(generation):
                await asyncio.sleep(_POLL_SECONDS)

    async def scale(self, width: int) -> None:
        """Set the region's width the way the HorizontalPodAutoscaler does."""
        body = {"spec": {"replicas": width}}
        await answered(lambda: self.client.patch(f"{self._region}/scale", body))

    async def serving(self, width: int, seconds: float) -> None:
        """Wait until the region serves at a width and nothing is under way. Raises NotServing."""
        try:
            async with asyncio.timeout(seconds):
                while not await self.serves(width):
                    await asyncio.sleep(_POLL_SECONDS)
        except TimeoutError:
            raise NotServing(f"width {width} after {seconds:.0f} s: {await self.why()}") from None

    async def serves(self, width: int) -> bool:
        """Return whether the job is healthy, its region at that width, and at rest."""
        job = await answered(lambda: self.client.get(self.path))
        if job["status"]["phase"] != "Healthy":
            return False
        status = await self._status()
        resizing = find(status.conditions, "Resizing")
        return status.width == width and resizing is not None and resizing.status == "False"

    async def resizes(self) -> bool:
        """Return whether a width change is under way."""
        resizing = find((await self._status()).conditions, "Resizing")
        return resizing is not None and resizing.status == "True"

    async def why(self) -> str:
        """Return what the job and its region say of themselves."""
        job = await answered(lambda: self.client.get(self.path))
        status = await self._status()
        said = [f"job {job['status']['phase']} {job['status'].get('message', '')}"]
        said += [f"{item.type} {item.status} {item.message}" for item in status.conditions]
        return "; ".join(said)

    async def _has(self, generation: int) -> bool:
        status = (await answered(lambda: self.client.get(self.path)))["status"]
        known = status.get("submittedGeneration", 0) >= generation
        return bool(known and status["phase"] == "Healthy")

    async def _status(self) -> ParallelRegionStatus:
        found = await answered(lambda: self.client.get(self._region))
        return ParallelRegionStatus.model_validate(found["status"])
