"""The Node object and its Lease: what makes the scheduler use this node."""

import asyncio
import logging
import os
import platform
import time

from streamgraft_common.kube import ApiError, Conflict, KubeClient, NotFound, Store, Unreachable
from streamgraft_common.kube.client import Object
from streamgraft_common.timestamps import to_rfc3339
from streamgraft_local.node.api import patch_status
from streamgraft_local.node.settings import NodeSettings
from streamgraft_local.node.states import now
from streamgraft_local.node.status import readiness

log = logging.getLogger(__name__)

_RENEW_SECONDS = 10
_LEASE_SECONDS = 40
"""As the kubelet: a node that missed this is NotReady soon afterwards."""
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def _architecture() -> str:
    return _ARCHITECTURES.get(platform.machine(), platform.machine())


def node_object(settings: NodeSettings) -> Object:
    """Return the Node without its status."""
    labels = {
        "kubernetes.io/hostname": settings.name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": _architecture(),
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": settings.name, "labels": labels},
    }


def node_status(
    settings: NodeSettings, endpoint: tuple[str, int], ready: bool, before: Object, version: str
) -> Object:
    """Return the Node's status; `before` is the newest known one, `version` Kubernetes'."""
    address, port = endpoint
    at = now()
    known = {item["type"]: item for item in before.get("conditions", [])}
    message = "process node: containers are local processes" if ready else "shutting down"
    wanted = [
        ("MemoryPressure", "False", "NotMeasured", "resources are not enforced"),
        ("DiskPressure", "False", "NotMeasured", "resources are not enforced"),
        ("PIDPressure", "False", "NotMeasured", "resources are not enforced"),
        ("Ready", "True" if ready else "False", "ProcessNode", message),
    ]
    conditions = []
    for kind, status, reason, text in wanted:
        old = known.get(kind, {})
        since = old["lastTransitionTime"] if old.get("status") == status else at
        conditions.append(
            {
                "type": kind,
                "status": status,
                "reason": reason,
                "message": text,
                "lastHeartbeatTime": at,
                "lastTransitionTime": since,
            }
        )
    return {
        "addresses": [{"type": "InternalIP", "address": address}],
        # Pods may ask for more CPUs than there are: what they ask for is not enforced.
        "capacity": {**settings.capacity, "cpu": str(os.cpu_count())},
        "allocatable": dict(settings.capacity),
        "conditions": conditions,
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        "nodeInfo": _node_info(version),
    }


def _node_info(version: str) -> Object:
    with open("/proc/sys/kernel/random/boot_id") as file:
        boot_id = file.read().strip()
    return {
        "architecture": _architecture(),
        "bootID": boot_id,
        "containerRuntimeVersion": f"process://{platform.python_version()}",
        "kernelVersion": platform.release(),
        "kubeProxyVersion": "",
        "kubeletVersion": version,
        "machineID": "",
        "operatingSystem": "linux",
        "osImage": "local processes",
        "systemUUID": "",
    }


class Registration:
    """Keeps the Node object and its Lease right."""

    def __init__(
        self, client: KubeClient, settings: NodeSettings, endpoint: tuple[str, int]
    ) -> None:
        self._client = client
        self._settings = settings
        self._endpoint = endpoint
        self._ready = True
        self._wrong = asyncio.Event()
        self._lease_spec: Object = {
            "holderIdentity": settings.name,
            "leaseDurationSeconds": _LEASE_SECONDS,
        }
        self.nodes = Store(client, "/api/v1/nodes", fieldSelector=f"metadata.name={settings.name}")
        self.nodes.listen(lambda *_: self._check())

    def _check(self) -> None:
        # The life-cycle controller sets Unknown after the machine slept; somebody may delete us.
        if readiness(self._current()) != ["True"] and self._ready:
            self._wrong.set()

    def _current(self) -> Object:
        node = self.nodes.get(("", self._settings.name)) or {}
        return dict(node.get("status", {}))

    async def run(self) -> None:
        """Register, then renew the Lease until cancelled."""
        self._wrong.set()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.nodes.run())
            group.create_task(self._keep_registered())
            group.create_task(self._renew())

    async def _keep_registered(self) -> None:
        while True:
            await self._wrong.wait()
            self._wrong.clear()
            try:
                await self._post()
            except (ApiError, Unreachable) as error:
                log.warning("registering the node: %s", error)
                self._wrong.set()
                await asyncio.sleep(1.0)

    async def _post(self) -> None:
        version = (await self._client.get("/version"))["gitVersion"]
        try:
            await self._client.create("/api/v1/nodes", node_object(self._settings))
        except Conflict:
            log.debug("node %s exists", self._settings.name)
        path = f"/api/v1/nodes/{self._settings.name}"
        status = node_status(self._settings, self._endpoint, self._ready, self._current(), version)
        await patch_status(self._client, path, None, status)

    async def leave(self) -> None:
        """Report NotReady, so that nothing new is scheduled here."""
        self._ready = False
        try:
            await self._post()
        except (ApiError, Unreachable) as error:
            log.info("the API server did not hear that the node leaves: %s", error)

    async def _renew(self) -> None:
        while True:
            try:
                await self._renew_once()
            except (ApiError, Unreachable) as error:
                log.warning("node lease: %s", error)
            await asyncio.sleep(_RENEW_SECONDS)

    async def _renew_once(self) -> None:
        spec = self._lease_spec | {"renewTime": to_rfc3339(time.time(), "microseconds")}
        name = self._settings.name
        try:
            await self._client.patch(f"{_LEASES}/{name}", {"spec": spec})
        except NotFound:
            await self._client.create(_LEASES, {"metadata": {"name": name}, "spec": spec})
