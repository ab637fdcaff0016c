"""Kills without warning: pods of a job, the operator, the broker."""

import asyncio
import os
import signal
from contextlib import suppress

from tests.e2e.torture.patience import answered
from tests.e2e.torture.schedule import Kill, Victim

from streamgraft_common import names
from streamgraft_common.kube import KubeClient
from streamgraft_common.kube.client import Object
from streamgraft_local import Cluster
from streamgraft_local.processes import Process


class Killer:
    """Kills parts of a cluster, and starts those again that nothing in it starts."""

    def __init__(self, cluster: Cluster, client: KubeClient, namespace: str, job: str) -> None:
        self._cluster = cluster
        self._client = client
        self._pods = f"/api/v1/namespaces/{namespace}/pods"
        self._selector = f"{names.LABEL_JOB}={job}"

    async def kill(self, kill: Kill) -> str:
        """Kill after the time that was chosen; return what was killed."""
        await asyncio.sleep(kill.after)
        if kill.victim in ("source", "region", "sink"):
            return await self._kill_pod(kill)
        await asyncio.to_thread(self._kill_component, kill.victim)
        await asyncio.to_thread(self._cluster.start, kill.victim)
        return kill.victim

    async def _kill_pod(self, kill: Kill) -> str:
        """Kill the process of a pod of that place, if one runs."""
        found = await answered(lambda: self._client.get(self._pods, labelSelector=self._selector))
        pods = [pod for pod in of_place(found["items"], kill.victim) if _pid(pod)]
        if not pods:
            return "no pod"
        pod = pods[int(kill.choice * len(pods))]
        with suppress(ProcessLookupError):
            os.kill(_pid(pod) or 0, signal.SIGKILL)
        return f"pod {pod['metadata']['name']}"

    def _kill_component(self, name: str) -> None:
        process = Process.load(self._cluster.home.record(name))
        assert process is not None
        process.send(signal.SIGKILL)
        while process.alive():
            pass


def of_place(pods: list[Object], victim: Victim) -> list[Object]:
    """Return the pods in the region or the warm pool, or those of the first or last PE outside."""
    named = sorted(pods, key=lambda pod: str(pod["metadata"]["name"]))
    labels = {id(pod): pod["metadata"].get("labels", {}) for pod in named}
    outside = {
        id(pod): int(labels[id(pod)][names.LABEL_PE].rpartition("-")[2])
        for pod in named
        if names.LABEL_PE in labels[id(pod)] and names.LABEL_REGION not in labels[id(pod)]
    }
    if victim == "region":
        return [pod for pod in named if id(pod) not in outside]
    wanted = (min if victim == "source" else max)(outside.values(), default=-1)
    return [pod for pod in named if outside.get(id(pod)) == wanted]


def _pid(pod: Object) -> int | None:
    """Return the process of a pod's container on the process node, if it runs."""
    containers = pod["status"].get("containerStatuses", [])
    if not containers or "running" not in containers[0]["state"]:
        return None
    return int(containers[0]["containerID"].partition("://")[2])
