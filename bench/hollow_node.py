"""A hollow node: pods bound to it report ready at once and start no driver.

It stands for a kubelet and the PE runtimes on it, so that the control plane can be measured with a
thousand PEs on one machine. Everything else is real: etcd, API server, scheduler, controller
manager, operator. `python -m bench.hollow_node KUBECONFIG` runs one until SIGTERM.
"""

import asyncio
import logging
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from streamgraft_common import names
from streamgraft_common.kube import Conflict, KubeClient, NotFound, Store, load_config
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, key_of
from streamgraft_common.resources import PROCESSING_ELEMENT
from streamgraft_common.timestamps import to_rfc3339
from streamgraft_local.node.api import delete_pod, pod_path
from streamgraft_local.node.registration import Registration
from streamgraft_local.node.settings import NodeSettings
from streamgraft_local.node.states import now
from streamgraft_operator.kit.work_queue import WorkQueue

NAME = "hollow"
CAPACITY = {"cpu": "10000", "memory": "10000Gi", "ephemeral-storage": "100Gi", "pods": "10000"}
WORKERS = 16

Patch = dict[str, Any]


def pod_status() -> Object:
    """Return the status of a pod that has just become ready."""
    at = now()
    true = {"status": "True", "lastTransitionTime": at}
    kinds = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    return {
        "phase": "Running",
        "startTime": at,
        "podIP": "127.0.0.2",
        "conditions": [{"type": kind, **true} for kind in kinds],
    }


def runtime_status(pe: Object, pod: Object, at: str) -> Patch | None:
    """Return the merge patch of a PE's `status.runtime` by the runtime in its pod, None if it has
    nothing to say.

    A shard starts and commits its first batch at once (`at`, RFC 3339); one that is taken away is
    released cleanly, at a batch boundary.
    """
    runtime = (pe.get("status") or {}).get("runtime") or {}
    name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
    epoch = pe["spec"].get("epoch", 0)
    mine = runtime.get("podUid") == uid
    held = set(runtime.get("shards", {}))
    wanted = {str(shard) for shard in pe["spec"].get("shards", [])}
    if mine and held == wanted and runtime.get("epoch") == epoch:
        return None
    running = {"state": "Running", "epoch": epoch, "startedAt": at, "firstBatchAt": at}
    release = {"epoch": epoch, "releasedAt": at, "lastBatchAt": at, "clean": True}
    lost = held - wanted
    shards: dict[str, Any] = dict.fromkeys(lost)
    return {
        "pod": name,
        "podUid": uid,
        "launchCount": int(pod["metadata"]["labels"][names.LABEL_LAUNCH]),
        "ready": True,
        "epoch": epoch,
        "shards": shards | dict.fromkeys(wanted - held if mine else wanted, running),
        "releases": dict.fromkeys(lost if mine else (), release),
    }


class HollowNode:
    """Plays the pods that the scheduler binds to it."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._pods = Store(client, "/api/v1/pods", fieldSelector=f"spec.nodeName={NAME}")
        self._pes = Store(client, PROCESSING_ELEMENT.path())
        self._queue = WorkQueue()
        self._pod_of: dict[Key, Key] = {}
        self._pods.listen(self._pod_changed)
        self._pes.listen(self._pe_changed)

    async def run(self, home: Path) -> None:
        """Register and play until cancelled."""
        settings = NodeSettings(NAME, home, Path(), {}, CAPACITY)
        registration = Registration(self._client, settings, ("127.0.0.1", 10250))
        async with asyncio.TaskGroup() as group:
            for part in (self._pods, self._pes, registration):
                group.create_task(part.run())
            for _ in range(WORKERS):
                group.create_task(self._work())

    def _pod_changed(self, key: Key, _: Object | None, new: Object | None) -> None:
        if new and (pe := new["metadata"].get("labels", {}).get(names.LABEL_PE)):
            self._pod_of[key[0], pe] = key
            self._queue.add(key)

    def _pe_changed(self, key: Key, _: Object | None, new: Object | None) -> None:
        if new and (pod := self._pod_of.get(key)):
            self._queue.add(pod)

    async def _work(self) -> None:
        while True:
            key = await self._queue.get()
            try:
                await self._play(key)
            except NotFound:
                continue  # gone in the meantime
            except Conflict:
                self._queue.add(key)
            finally:
                self._queue.done(key)

    async def _play(self, key: Key) -> None:
        pod = self._pods.get(key)
        if pod is None:
            return
        if "deletionTimestamp" in pod["metadata"]:
            await delete_pod(self._client, pod)
            return
        if pod["status"]["phase"] == "Pending":
            body = {"status": pod_status()}
            self._pods.observe(await self._client.patch(f"{pod_path(pod)}/status", body))
        pe = self._pes.get((key[0], pod["metadata"]["labels"][names.LABEL_PE]))
        if pe and (patch := runtime_status(pe, pod, to_rfc3339(time.time()))):
            path = PROCESSING_ELEMENT.path(*key_of(pe))
            body = {"status": {"runtime": patch}}
            self._pes.observe(await self._client.patch(f"{path}/status", body))


async def _main(kubeconfig: str) -> None:
    with tempfile.TemporaryDirectory(prefix="streamgraft-hollow-") as home:
        async with KubeClient(load_config(kubeconfig)) as client:
            task = asyncio.ensure_future(HollowNode(client).run(Path(home)))
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, task.cancel)
            await asyncio.gather(task, return_exceptions=True)
            if not task.cancelled() and (error := task.exception()):
                raise error


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    asyncio.run(_main(sys.argv[1]))
