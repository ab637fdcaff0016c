"""What the API server must hold before our components start: definitions, roles, API services."""

import asyncio
import base64
from collections.abc import Iterable
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

from streamgraft_common.kube import KubeClient, load_config
from streamgraft_local.paths import DEPLOY

Object = dict[str, Any]
MANAGER = "streamgraft-local"

_PLURALS = {
    "APIService": "apiservices",
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "CustomResourceDefinition": "customresourcedefinitions",
    "Namespace": "namespaces",
    "RoleBinding": "rolebindings",
    "Service": "services",
}


def documents(folder: Path) -> list[Object]:
    """Return all objects in the YAML files of a folder, files in the order of their names."""
    return [
        item
        for file in sorted(folder.glob("*.yaml"))
        for item in yaml.safe_load_all(file.read_text())
        if item
    ]


def path_of(item: Object) -> str:
    """Return the API path of an object of a kind that our manifests use."""
    version, metadata = item["apiVersion"], item["metadata"]
    base = f"/apis/{version}" if "/" in version else f"/api/{version}"
    if namespace := metadata.get("namespace"):
        base += f"/namespaces/{namespace}"
    return f"{base}/{_PLURALS[item['kind']]}/{metadata['name']}"


def with_adapter(items: Iterable[Object], port: int, authority: bytes) -> list[Object]:
    """Return the objects with the adapter's port and the PEM of its authority filled in."""
    filled = []
    for item in map(deepcopy, items):
        if item["kind"] == "APIService":
            item["spec"]["service"]["port"] = port
            item["spec"]["caBundle"] = base64.b64encode(authority).decode()
        elif item["kind"] == "Service":
            item["spec"]["ports"] = [{"port": port}]
        filled.append(item)
    return filled


def apply(kubeconfig: Path, adapter_port: int, authority: bytes) -> None:
    """Create or update all objects and wait until the definitions are served."""
    asyncio.run(_apply(kubeconfig, adapter_port, authority))


async def _apply(kubeconfig: Path, adapter_port: int, authority: bytes) -> None:
    definitions = documents(DEPLOY / "crds")
    others = with_adapter(documents(DEPLOY / "manifests"), adapter_port, authority)
    others.sort(key=lambda item: item["kind"] != "Namespace")
    async with KubeClient(load_config(kubeconfig)) as client:
        for item in others[:1]:
            await client.apply(path_of(item), item, MANAGER)
        await asyncio.gather(
            *(client.apply(path_of(item), item, MANAGER) for item in [*definitions, *others[1:]])
        )
        async with asyncio.timeout(30):
            await asyncio.gather(*(_established(client, item) for item in definitions))


async def _established(client: KubeClient, definition: Object) -> None:
    while True:
        status = (await client.get(path_of(definition))).get("status", {})
        conditions = status.get("conditions") or []
        if any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
            return
        await asyncio.sleep(0.05)
