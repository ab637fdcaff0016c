"""Persistent volume claims: each gets a folder of the node, as a hostPath volume bound to it.

The node provisions and binds itself, because the embedded control plane may run without the
volume binder; where that runs too, both want the same, and the second one finds it done.
"""

import asyncio
import logging
import shutil
from pathlib import Path

from streamgraft_common.kube import ApiError, Conflict, KubeClient, NotFound, Store, Unreachable
from streamgraft_common.kube.client import Object
from streamgraft_local.node.api import patch_status
from streamgraft_local.node.volumes import VolumeError, host_folder

log = logging.getLogger(__name__)

_VOLUMES = "/api/v1/persistentvolumes"
_PROVISIONER = "streamgraft.io/process-node"
_LABEL = "streamgraft.io/node"
_RETRY_SECONDS = 1.0


def _claim_path(claim: Object) -> str:
    metadata = claim["metadata"]
    return f"/api/v1/namespaces/{metadata['namespace']}/persistentvolumeclaims/{metadata['name']}"


def _volume(claim: Object, folder: Path, node: str) -> Object:
    metadata, spec = claim["metadata"], claim["spec"]
    reference = {key: metadata[key] for key in ("namespace", "name", "uid")}
    return {
        "metadata": {
            "name": f"pvc-{metadata['uid']}",
            "labels": {_LABEL: node},
            "annotations": {"pv.kubernetes.io/provisioned-by": _PROVISIONER},
        },
        "spec": {
            "accessModes": spec["accessModes"],
            "capacity": spec["resources"]["requests"],
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **reference},
            "hostPath": {"path": str(folder), "type": "DirectoryOrCreate"},
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": spec.get("storageClassName") or "",
        },
    }


async def bind(client: KubeClient, claim: Object, base: Path, node: str) -> None:
    """Give a claim its folder. Does nothing twice."""
    metadata = claim["metadata"]
    folder = base / f"{metadata['namespace']}_{metadata['name']}_{metadata['uid']}"
    folder.mkdir(parents=True, exist_ok=True)
    volume = _volume(claim, folder, node)
    name = volume["metadata"]["name"]
    try:
        await client.create(_VOLUMES, volume)
    except Conflict:
        log.debug("volume %s exists", name)
    await patch_status(client, f"{_VOLUMES}/{name}", None, {"phase": "Bound"})
    annotations = {"pv.kubernetes.io/bind-completed": "yes"}
    body = {"metadata": {"annotations": annotations}, "spec": {"volumeName": name}}
    await client.patch(_claim_path(claim), body)
    spec = volume["spec"]
    status = {key: spec[key] for key in ("accessModes", "capacity")} | {"phase": "Bound"}
    await patch_status(client, _claim_path(claim), metadata["uid"], status)


async def claim_folder(client: KubeClient, claim: Object) -> Path:
    """Return the folder of a bound claim. Raises VolumeError."""
    name, volume_name = claim["metadata"]["name"], claim["spec"].get("volumeName")
    if not volume_name:
        raise VolumeError(f'PersistentVolumeClaim "{name}" is not bound yet')
    volume = await client.get(f"{_VOLUMES}/{volume_name}")
    if "hostPath" not in volume["spec"]:
        raise VolumeError(f'PersistentVolumeClaim "{name}": {volume_name} is no hostPath volume')
    return host_folder(volume["spec"])


class ClaimProvisioner:
    """Binds every unbound claim; removes volume and folder of deleted ones."""

    def __init__(self, client: KubeClient, base: Path, node: str) -> None:
        self._client = client
        self._base = base
        self._node = node
        self._dirty = asyncio.Event()
        self.claims = Store(client, "/api/v1/persistentvolumeclaims")
        self.claims.listen(lambda *_: self._dirty.set())

    async def run(self) -> None:
        """Keep claims and volumes in step until cancelled."""
        await self.claims.synced.wait()
        self._dirty.set()
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            try:
                await self._reconcile()
            except (ApiError, Unreachable) as error:
                log.warning("claims: %s", error)
                self._dirty.set()
                await asyncio.sleep(_RETRY_SECONDS)

    async def _reconcile(self) -> None:
        for claim in self.claims.items():
            if not claim["spec"].get("volumeName") and "deletionTimestamp" not in claim["metadata"]:
                await bind(self._client, claim, self._base, self._node)
        alive = {claim["metadata"]["uid"] for claim in self.claims.items()}
        selector = f"{_LABEL}={self._node}"
        for volume in (await self._client.get(_VOLUMES, labelSelector=selector))["items"]:
            if volume["spec"]["claimRef"]["uid"] not in alive:
                await self._reclaim(volume)

    async def _reclaim(self, volume: Object) -> None:
        try:
            await self._client.delete(f"{_VOLUMES}/{volume['metadata']['name']}")
        except NotFound:
            log.debug("volume %s is gone", volume["metadata"]["name"])
        folder = Path(volume["spec"]["hostPath"]["path"])
        if self._base in folder.parents:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
