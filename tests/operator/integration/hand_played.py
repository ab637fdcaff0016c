"""A PE runtime played by hand: it does in the API what a node and the PEs on it would do."""

import asyncio
import time
from typing import Any

from streamgraft_common import names
from streamgraft_common.conditions import is_ready
from streamgraft_common.kinds import POD
from streamgraft_common.kube import ApiError, KubeClient, NotFound, Store
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import PROCESSING_ELEMENT
from streamgraft_common.timestamps import to_rfc3339


class HandPlayedPe:
    """Plays the pods of all PEs of a namespace.

    `serving`: pods become ready and take the shards of their spec; turned off, new pods stay as
    they are. `violations`: moments in which a shard had two owners.
    """

    def __init__(self, client: KubeClient, namespace: str, node: str) -> None:
        self._client = client
        self._namespace = namespace
        self._node = node
        self.pods = Store(client, POD.path(namespace), labelSelector=names.LABEL_JOB)
        self.pes = Store(client, PROCESSING_ELEMENT.path(namespace))
        self.serving = True
        self.violations: list[str] = []
        self._wake = asyncio.Event()
        for store in (self.pods, self.pes):
            store.listen(lambda *_: self._wake.set())

    async def run(self) -> None:
        """Play until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.pods.run())
            group.create_task(self.pes.run())
            group.create_task(self._play())

    async def _play(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            self._check_owners()
            for pod in self.pods.items():
                try:
                    await self._play_pod(pod)
                except NotFound:
                    continue  # gone in the meantime
                except ApiError as error:
                    if error.code != 409:
                        raise
                    self._wake.set()

    async def _play_pod(self, pod: Object) -> None:
        metadata, path = pod["metadata"], POD.of(self._key(pod))
        if "deletionTimestamp" in metadata:
            # Another pod may have its name by now.
            this = {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}}
            await self._client.request("DELETE", path, body=this)
        elif not pod["spec"].get("nodeName"):
            target = {"apiVersion": "v1", "kind": "Node", "name": self._node}
            body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": metadata["name"]}}
            await self._client.create(f"{path}/binding", {**body, "target": target})
        elif pod["status"]["phase"] == "Pending" and self.serving:
            # Only this very version: by now a test may have let the pod fail.
            seen = {"resourceVersion": metadata["resourceVersion"]}
            await self._client.patch(f"{path}/status", {"metadata": seen, "status": _running()})
        elif is_ready(pod):
            await self._play_runtime(pod)

    async def _play_runtime(self, pod: Object) -> None:
        name = pod["metadata"]["name"]
        pe = self.pes.get((self._namespace, pod["metadata"]["labels"].get(names.LABEL_PE, "")))
        if pe is None or (pe.get("status") or {}).get("pod") != name:
            return  # in the warm pool, or not (yet) the pod of a launch
        runtime = pe["status"].get("runtime") or {}
        wanted, epoch = set(map(str, pe["spec"]["shards"])), pe["spec"]["epoch"]
        content = pe["metadata"]["annotations"][names.ANNOTATION_CONTENT]
        mine = runtime.get("podUid") == pod["metadata"]["uid"]
        held = set(runtime.get("shards", {}))
        saved = _saved(pe["spec"].get("saving"))
        current = runtime.get("epoch"), runtime.get("contentId"), runtime.get("saved")
        if mine and held == wanted and current == (epoch, content, saved):
            return
        now = to_rfc3339(time.time())
        running = {"state": "Running", "epoch": epoch, "startedAt": now, "firstBatchAt": now}
        release = {"epoch": epoch, "releasedAt": now, "lastBatchAt": now, "clean": True}
        fresh = wanted - held if mine else wanted
        shards: dict[str, Any] = dict.fromkeys(held - wanted)
        new: dict[str, Any] = {
            "pod": name,
            "podUid": pod["metadata"]["uid"],
            "launchCount": int(pod["metadata"]["labels"][names.LABEL_LAUNCH]),
            "ready": True,
            "reusable": True,
            "epoch": epoch,
            "contentId": content,
            "shards": shards | dict.fromkeys(fresh, running),
            "releases": dict.fromkeys(held - wanted if mine else (), release),
            "saved": saved,
        }
        path = PROCESSING_ELEMENT.of(self._key(pe))
        self.pes.observe(await self._client.patch(f"{path}/status", {"status": {"runtime": new}}))

    def _check_owners(self) -> None:
        owners: dict[tuple[str, str], set[str]] = {}
        for pe in self.pes.items():
            runtime = (pe.get("status") or {}).get("runtime") or {}
            for shard in {*map(str, pe["spec"].get("shards", [])), *runtime.get("shards", {})}:
                place = pe["spec"]["job"] + "/" + pe["spec"]["stageName"], shard
                owners.setdefault(place, set()).add(pe["metadata"]["name"])
        for place, names_of_owners in owners.items():
            if len(names_of_owners) > 1:
                self.violations.append(f"{place} has owners {sorted(names_of_owners)}")

    def _key(self, item: Object) -> tuple[str, str]:
        return self._namespace, item["metadata"]["name"]


def _saved(asked: Object | None) -> Object | None:
    """Claim to have copied what is wished for."""
    return asked and {"uid": asked["uid"], "shards": asked["shards"]}


def _running() -> dict[str, Any]:
    now = to_rfc3339(time.time()).partition(".")[0] + "Z"
    return {
        "phase": "Running",
        "startTime": now,
        "podIP": "127.0.0.2",
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": now}],
    }
