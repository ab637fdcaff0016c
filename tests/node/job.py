"""The job in its pods: submitted, scaled, disturbed."""

import asyncio
import os
import sys
from pathlib import Path

from tests.node.node import Node
from tests.node.release import JOBS
from tests.node.waiting import until

from streamgraft_common import names
from streamgraft_common.conditions import is_ready
from streamgraft_common.kinds import AUTOSCALER
from streamgraft_common.kube import KubeClient
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import JOB, PARALLEL_REGION, PROCESSING_ELEMENT

_PODS = f"/api/v1/namespaces/{JOBS}/pods"


class Job:
    """A job with one region."""

    def __init__(
        self, node: Node, client: KubeClient, application: Path, name: str, region: str
    ) -> None:
        self._node, self._client = node, client
        self._application, self.name = application, name
        self._region_name = names.region_name(name, region)
        self._region = PARALLEL_REGION.path(JOBS, self._region_name)

    async def command(self, *arguments: str) -> None:
        """Run the `streamgraft` command, which must succeed."""
        tools = self._node.setting.tools
        program = str(Path(sys.executable).with_name("streamgraft"))
        found = {"STREAMGRAFT_JAVA": str(tools.java), "STREAMGRAFT_JARS": str(tools.driver_jars)}
        process = await asyncio.create_subprocess_exec(
            *(program, "--kubeconfig", str(self._node.kubeconfig), "-n", JOBS, *arguments),
            env={**os.environ, **found},
        )
        assert await process.wait() == 0, arguments

    async def submit(self, *options: str) -> None:
        """Submit the application and wait until it runs."""
        await self.command("submit", str(self._application), *options)
        await self.healthy()

    async def healthy(self) -> float:
        """Wait until the job is healthy with all that was asked of it; return the seconds."""

        async def so() -> bool:
            job = await self._client.get(JOB.path(JOBS, self.name))
            healthy: bool = job.get("status", {}).get("phase") == "Healthy"
            if not healthy:  # it may have no region yet
                return False
            region = await self._client.get(self._region)
            width = region.get("status", {}).get("width")
            pods = [pod for pod in await self.pods() if is_ready(pod)]
            ready = len(pods) >= len(await self.pes())
            return ready and width == region["spec"]["width"]

        return await until("the job is healthy", so)

    async def scale(self, width: int) -> float:
        """Set the width as users and the HPA do; return the seconds until it is reached."""
        await self._client.patch(f"{self._region}/scale", {"spec": {"replicas": width}})
        return await self.healthy()

    async def width(self) -> int:
        """Return the width that is wanted."""
        return int((await self._client.get(self._region))["spec"]["width"])

    async def pods(self) -> list[Object]:
        """Return the pods of PEs that are not being deleted."""
        selector = f"{names.LABEL_JOB}={self.name},{names.LABEL_PE}"
        items = (await self._client.get(_PODS, labelSelector=selector))["items"]
        return [pod for pod in items if "deletionTimestamp" not in pod["metadata"]]

    async def pes(self) -> list[Object]:
        """Return the ProcessingElements."""
        selector = f"{names.LABEL_JOB}={self.name}"
        path = PROCESSING_ELEMENT.path(JOBS)
        items: list[Object] = (await self._client.get(path, labelSelector=selector))["items"]
        return items

    async def kill_channel(self) -> float:
        """Delete the pod of channel 0 by force; return the seconds until its PE has a ready one."""
        selector = f"{names.LABEL_JOB}={self.name},{names.LABEL_CHANNEL}=0,{names.LABEL_LAUNCH}"
        pod = (await self._client.get(_PODS, labelSelector=selector))["items"][0]
        uid, pe = pod["metadata"]["uid"], pod["metadata"]["labels"][names.LABEL_PE]
        await self._client.delete(f"{_PODS}/{pod['metadata']['name']}", gracePeriodSeconds="0")

        async def replaced() -> bool:
            return any(
                item["metadata"]["uid"] != uid and is_ready(item)
                for item in await self.pods()
                if item["metadata"]["labels"][names.LABEL_PE] == pe
            )

        return await until("the killed pod is replaced", replaced)

    async def fill_pool(self, size: int) -> None:
        """Have the job keep so many warm pods, and wait for them."""
        await self._client.patch(JOB.path(JOBS, self.name), {"spec": {"warmPool": size}})
        selector = f"{names.LABEL_JOB}={self.name},{names.LABEL_POOL}={names.POOL_WARM}"

        async def filled() -> bool:
            items = (await self._client.get(_PODS, labelSelector=selector))["items"]
            return len(items) == size and all(is_ready(pod) for pod in items)

        await until(f"{size} pods are warm", filled)

    async def autoscale(self) -> None:
        """Hand the width to the HPA, which finds it too large for the load, and wait for it."""
        wide = await self.width()
        await self._client.create(AUTOSCALER.path(JOBS), _autoscaler(self._region_name))

        async def narrowed() -> bool:
            return await self.width() < wide

        await until("the HPA narrows the region", narrowed)
        await self._client.delete(f"{AUTOSCALER.path(JOBS)}/{self._region_name}")
        await self.healthy()

    async def drain(self, node: str) -> None:
        """Evict all pods of PEs from the node, which takes no new ones until they are gone.

        Those of the chart stay: its budgets keep one replica of each until another is ready, which
        no other node is there for, so `kubectl drain` would wait for ever.
        """
        path = f"/api/v1/nodes/{node}"
        await self._client.patch(path, {"spec": {"unschedulable": True}})
        evicted = await self.pods()
        for pod in evicted:
            metadata = {"name": pod["metadata"]["name"], "namespace": JOBS}
            eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
            await self._client.create(f"{_PODS}/{metadata['name']}/eviction", eviction)
        # Their replacements are Pending until the node takes pods again.
        old = {pod["metadata"]["uid"] for pod in evicted}

        async def gone() -> bool:
            items = (await self._client.get(_PODS))["items"]
            return not old & {pod["metadata"]["uid"] for pod in items}

        await until("the node is drained", gone)
        await self._client.patch(path, {"spec": {"unschedulable": None}})
        await self.healthy()

    async def cancel(self) -> None:
        """Cancel the job and wait until its pods are gone."""
        await self.command("cancel", self.name)

        async def gone() -> bool:
            return not (await self._client.get(_PODS))["items"]

        await until("the pods are gone", gone)


def _autoscaler(region: str) -> Object:
    target = {"apiVersion": "streamgraft.io/v1alpha1", "kind": "ParallelRegion", "name": region}
    demand = {
        "describedObject": target,
        "metric": {"name": "demand"},
        "target": {"type": "AverageValue", "averageValue": "1"},
    }
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": region, "namespace": JOBS},
        "spec": {
            "scaleTargetRef": target,
            "minReplicas": 1,
            "maxReplicas": 4,
            "metrics": [{"type": "Object", "object": demand}],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
        },
    }
