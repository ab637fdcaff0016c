"""The drain of `make test-node`, with a node that is played."""

import asyncio
from pathlib import Path
from typing import Any, cast

from tests.node.job import Job
from tests.node.node import Node

from streamgraft_common import names
from streamgraft_common.kube import KubeClient
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import JOB, PARALLEL_REGION

_PES = ("numbers-0", "numbers-1")
_LOOKS = 3
"""Lists of pods in which one that was evicted still ends."""


class _Cluster:
    """A job of two PEs on one node; a pod that is evicted ends in its own time, and another is
    Pending as long as the node takes none."""

    def __init__(self) -> None:
        self.takes_pods = True
        self.running_at_uncordon: set[str] = set()
        self._ending: dict[str, int] = {}
        self._pods = {f"{pe}-1": _pod(f"{pe}-1") for pe in _PES}

    async def patch(self, _: str, body: Object) -> None:
        self.takes_pods = not body["spec"]["unschedulable"]
        if self.takes_pods:
            self.running_at_uncordon = self._pods.keys() & {f"{pe}-1" for pe in _PES}

    async def create(self, path: str, _: Object) -> None:
        name = path.split("/")[-2]
        self._pods[name]["metadata"]["deletionTimestamp"] = "2026-11-27T12:00:00Z"
        self._ending[name] = _LOOKS
        self._pods[name[:-1] + "2"] = _pod(name[:-1] + "2")

    async def get(self, path: str, **_: str) -> Any:
        if path.endswith("/processingelements"):
            return {"items": list(_PES)}
        if path.endswith("/pods"):
            return {"items": self._listed()}
        if f"/{PARALLEL_REGION.plural}/" in path:
            return {"spec": {"width": 1}, "status": {"width": 1}}
        assert f"/{JOB.plural}/" in path, path
        return {"status": {"phase": "Healthy"}}

    def _listed(self) -> list[Object]:
        for name in list(self._ending):
            self._ending[name] -= 1
            if self._ending[name] < 0:
                del self._ending[name], self._pods[name]
        for name, pod in self._pods.items():
            ready = name.endswith("-1") or self.takes_pods
            pod["status"]["conditions"] = [{"type": "Ready", "status": str(ready)}]
        return list(self._pods.values())


def _pod(name: str) -> Object:
    labels = {names.LABEL_JOB: "numbers", names.LABEL_PE: name[:-2]}
    return {"metadata": {"name": name, "uid": name, "labels": labels}, "status": {}}


def test_the_node_takes_pods_again_when_the_evicted_ones_are_gone() -> None:
    """Not as soon as they are told to end, and without waiting for those that wait for the node."""
    cluster = _Cluster()
    client = cast(KubeClient, cluster)
    job = Job(cast(Node, None), client, Path("application.py"), "numbers", "work")
    asyncio.run(job.drain("node"))
    assert cluster.takes_pods
    assert cluster.running_at_uncordon == set()
