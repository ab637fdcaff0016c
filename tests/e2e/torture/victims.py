"""Kills without warning: pods of a job, the operator, the broker."""

import asyncio
import os
import signal
from contextlib import suppress

from tests.e2e.torture.patience import answered
from tests.e2e.torture.schedule import Kill

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
        if kill.victim == "pod":
            return await self._kill_pod(kill.choice)
        await asyncio.to_thread(self._kill_component, kill.victim)
        await asyncio.to_thread(self._cluster.start, kill.victim)
        return kill.victim

    async def _kill_pod(self, choice: float) -> str:
        """Kill the process of any pod of the job, those of the warm pool included."""
        found = await answered(lambda: self._client.get(self._pods, labelSelector=self._selector))
        running = {pod["metadata"]["name"]: pid for pod in found["items"] if (pid := _pid(pod))}
        name = sorted(running)[int(choice * len(running))]
        with suppress(ProcessLookupError):
            os.kill(running[name], signal.SIGKILL)
        return f"pod {name}"

    def _kill_component(self, name: str) -> None:
        process = Process.load(self._cluster.home.record(name))
        assert process is not None
        process.send(signal.SIGKILL)
        while process.alive():
            pass


def _pid(pod: Object) -> int | None:
    """Return the process of a pod's container on the process node, if it runs."""
    containers = pod["status"].get("containerStatuses", [])
    if not containers or "running" not in containers[0]["state"]:
        return None
    return int(containers[0]["containerID"].partition("://")[2])
