"""What the API server must hold before our components start: definitions, roles, API services."""

import asyncio
import base64
from collections.abc import Iterable
from copy import deepcopy
from pathlib import Path

import yaml

from streamgraft_common import names
from streamgraft_common.access import SYSTEM_NAMESPACE
from streamgraft_common.kinds import (
    ADMISSION_POLICY,
    ADMISSION_POLICY_BINDING,
    API_SERVICE,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CUSTOM_RESOURCE_DEFINITION,
    NAMESPACE,
    ROLE,
    ROLE_BINDING,
    SECRET,
    SERVICE,
)
from streamgraft_common.kube import KubeClient, load_config
from streamgraft_common.kube.client import Object
from streamgraft_local.errors import LocalError
from streamgraft_local.paths import DEPLOY

MANAGER = "streamgraft-local"
WAIT_SECONDS = 90.0
"""How long what was applied may take to be served, on a busy machine."""
CUSTOM_METRICS = "local-custom-metrics.yaml"
RESOURCE_METRICS = "local-resource-metrics.yaml"

_KINDS = {
    kind.kind: kind
    for kind in (
        ADMISSION_POLICY,
        ADMISSION_POLICY_BINDING,
        API_SERVICE,
        CLUSTER_ROLE,
        CLUSTER_ROLE_BINDING,
        CUSTOM_RESOURCE_DEFINITION,
        NAMESPACE,
        ROLE,
        ROLE_BINDING,
        SECRET,
        SERVICE,
    )
}

_CONDITIONAL = ("APIService", "CustomResourceDefinition")


def definitions() -> list[Object]:
    """Return the custom resource definitions."""
    return [item for file in sorted((DEPLOY / "crds").glob("*.yaml")) for item in documents(file)]


def documents(file: Path) -> list[Object]:
    """Return all objects in a YAML file."""
    return [item for item in yaml.safe_load_all(file.read_text()) if item]


def path_of(item: Object) -> str:
    """Return the API path of an object of a kind that our manifests use."""
    metadata = item["metadata"]
    return _KINDS[item["kind"]].path(metadata.get("namespace", ""), metadata["name"])


def served_at(items: Iterable[Object], port: int, authority: bytes) -> list[Object]:
    """Return API services with the port of their server and the PEM of its authority filled in."""
    filled = []
    for item in map(deepcopy, items):
        if item["kind"] == "APIService":
            item["spec"]["service"]["port"] = port
            item["spec"]["caBundle"] = base64.b64encode(authority).decode()
        elif item["kind"] == "Service":
            item["spec"]["ports"] = [{"port": port}]
        filled.append(item)
    return filled


def pe_authority(certificate: bytes, key: bytes) -> Object:
    """Return the Secret with the authority (PEM) that the operator issues certificates with."""
    content = {"tls.crt": certificate, "tls.key": key}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": names.AUTHORITY_SECRET, "namespace": SYSTEM_NAMESPACE},
        "type": "kubernetes.io/tls",
        "data": {name: base64.b64encode(value).decode() for name, value in content.items()},
    }


def apply_base(kubeconfig: Path, authority: Object) -> None:
    """Create or update definitions, roles, users' bindings and the operator's `authority`.

    Waits until all kinds are served.
    """
    asyncio.run(_apply_base(kubeconfig, authority))


def apply_api_services(kubeconfig: Path, manifest: str, port: int, authority: bytes) -> None:
    """Make the API server ask a server for the metrics of a manifest; wait until it does.

    Only once the server serves: while a registered API service does not answer, Kubernetes can't
    delete namespaces.
    """
    items = served_at(documents(DEPLOY / "manifests" / manifest), port, authority)
    asyncio.run(_apply(kubeconfig, items, "Available"))


async def _apply_base(kubeconfig: Path, authority: Object) -> None:
    roles = documents(DEPLOY / "manifests/roles.yaml")
    users = documents(DEPLOY / "manifests/local-users.yaml")
    namespaces = [item for item in roles if item["kind"] == "Namespace"]
    await _apply(kubeconfig, namespaces, "")
    await _apply(kubeconfig, [*definitions(), *roles, *users, authority], "Established")


async def _apply(kubeconfig: Path, items: list[Object], condition: str) -> None:
    """Apply all and wait until those that have conditions meet the one given."""
    async with KubeClient(load_config(kubeconfig)) as client:
        await asyncio.gather(*(client.apply(path_of(item), item, MANAGER) for item in items))
        conditional = [item for item in items if item["kind"] in _CONDITIONAL]
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await asyncio.gather(*(_meets(client, item, condition) for item in conditional))
        except TimeoutError as error:
            names = ", ".join(f"{item['kind']} {item['metadata']['name']}" for item in conditional)
            raise LocalError(
                f"not {condition} after {WAIT_SECONDS:g} s: one of {names}; `kubectl get` with the"
                f" kubeconfig {kubeconfig} shows which"
            ) from error


async def _meets(client: KubeClient, item: Object, condition: str) -> None:
    while True:
        status = (await client.get(path_of(item))).get("status", {})
        found = {entry["type"]: entry["status"] for entry in status.get("conditions") or []}
        if found.get(condition) == "True":
            return
        await asyncio.sleep(0.05)
