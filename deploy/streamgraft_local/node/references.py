"""The ConfigMaps and Secrets that a pod's environment and volumes refer to."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from streamgraft_common.kube import KubeClient
from streamgraft_common.kube.client import Object

Kind = Literal["configmaps", "secrets"]
Reference = tuple[Kind, str]
"""(kind, name) in the pod's namespace."""


class MissingReference(Exception):
    """Something that the pod refers to, and that is not optional, does not exist."""


@dataclass(frozen=True)
class Sources:
    """What was found in the API server, by kind and name."""

    objects: Mapping[Reference, Object] = field(default_factory=dict)

    def find(self, kind: Kind, name: str, *, optional: bool) -> Object | None:
        """Return the object, or None if it may be missing. Raises MissingReference."""
        found = self.objects.get((kind, name))
        if found is None and not optional:
            raise MissingReference(
                f'{"ConfigMap" if kind == "configmaps" else "Secret"} "{name}" not found'
            )
        return found


def references(pod: Object) -> set[Reference]:
    """Return every ConfigMap and Secret that the pod names, optional ones included."""
    spec = pod["spec"]
    found: set[Reference] = set()
    for container in [*spec.get("initContainers", []), *spec["containers"]]:
        found.update(_of_container(container))
    for volume in spec.get("volumes", []):
        found.update(_of_volume(volume))
    return found


def _of_container(container: Object) -> Iterator[Reference]:
    for source in container.get("envFrom", []):
        if "configMapRef" in source:
            yield "configmaps", source["configMapRef"]["name"]
        if "secretRef" in source:
            yield "secrets", source["secretRef"]["name"]
    for variable in container.get("env", []):
        origin = variable.get("valueFrom") or {}
        if "configMapKeyRef" in origin:
            yield "configmaps", origin["configMapKeyRef"]["name"]
        if "secretKeyRef" in origin:
            yield "secrets", origin["secretKeyRef"]["name"]


def _of_volume(volume: Object) -> Iterator[Reference]:
    if "configMap" in volume:
        yield "configmaps", volume["configMap"]["name"]
    if "secret" in volume:
        yield "secrets", volume["secret"]["secretName"]
    for source in volume.get("projected", {}).get("sources", []):
        if "configMap" in source:
            yield "configmaps", source["configMap"]["name"]
        if "secret" in source:
            yield "secrets", source["secret"]["name"]


async def load(client: KubeClient, namespace: str, wanted: set[Reference]) -> Sources:
    """Read the newest version of each from the API server; missing ones are left out."""
    objects: dict[Reference, Object] = {}
    for kind, name in sorted(wanted):
        found = await client.find(f"/api/v1/namespaces/{namespace}/{kind}/{name}")
        if found is not None:
            objects[kind, name] = found
    return Sources(objects)
