"""A container's environment variables and its command line, as Kubernetes computes them.

Lowest to highest priority: what the node gives every container (image environment, PATH, access to
the API), `envFrom` in order, `env` in order. `env` may refer to what stands before it.
"""

import base64
import re
from collections.abc import Mapping
from typing import Any

from streamgraft_common.kube.client import Object
from streamgraft_common.quantities import in_units
from streamgraft_local.node.expansion import expand
from streamgraft_local.node.references import MissingReference, Sources

_SUBSCRIPT = re.compile(r"^metadata\.(labels|annotations)\['(.+)'\]$")
_FIELDS = {
    "metadata.name": ("metadata", "name"),
    "metadata.namespace": ("metadata", "namespace"),
    "metadata.uid": ("metadata", "uid"),
    "spec.nodeName": ("spec", "nodeName"),
    "spec.serviceAccountName": ("spec", "serviceAccountName"),
    "status.podIP": ("status", "podIP"),
    "status.podIPs": ("status", "podIP"),
    "status.hostIP": ("status", "hostIP"),
    "status.hostIPs": ("status", "hostIP"),
}


def data_of(kind: str, item: Object) -> dict[str, bytes]:
    """Return the content of a ConfigMap or Secret by key, decoded."""
    if kind == "secrets":
        return {key: base64.b64decode(text) for key, text in (item.get("data") or {}).items()}
    plain = {key: text.encode() for key, text in (item.get("data") or {}).items()}
    binary = item.get("binaryData") or {}
    return plain | {key: base64.b64decode(text) for key, text in binary.items()}


def field_value(pod: Object, path: str) -> str:
    """Return a field of the pod by its downward API path. Raises ValueError for unknown ones."""
    if path in ("metadata.labels", "metadata.annotations"):
        entries = pod["metadata"].get(path.removeprefix("metadata.")) or {}
        return "\n".join(f'{key}="{_escaped(entries[key])}"' for key in sorted(entries))
    if match := _SUBSCRIPT.match(path):
        return str((pod["metadata"].get(match[1]) or {}).get(match[2], ""))
    if path not in _FIELDS:
        raise ValueError(f"fieldRef {path!r} is not supported")
    part, name = _FIELDS[path]
    return str(pod.get(part, {}).get(name, ""))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def resource_value(
    container: Object, reference: Mapping[str, str], allocatable: Mapping[str, str]
) -> str:
    """Return a request or limit in units of the divisor; an absent limit is all the node has."""
    kind, name = reference["resource"].split(".", 1)
    declared = container.get("resources", {}).get(kind, {})
    fallback = allocatable.get(name, "0") if kind == "limits" else "0"
    return in_units(declared.get(name, fallback), reference.get("divisor", "1"))


def environment(
    container: Object,
    pod: Object,
    sources: Sources,
    given: Mapping[str, str],
    allocatable: Mapping[str, str],
) -> dict[str, str]:
    """Return all variables of a container. `pod` has its address in status already.

    Raises MissingReference for what must exist and does not.
    """
    result = dict(given)
    for source in container.get("envFrom", []):
        result.update(_imported(source, sources))
    for variable in container.get("env", []):
        name = variable["name"]
        if "valueFrom" not in variable:
            result[name] = expand(variable.get("value", ""), result)
            continue
        value = _origin_value(variable["valueFrom"], container, pod, sources, allocatable)
        if value is not None:
            result[name] = value
    return result


def _imported(source: Object, sources: Sources) -> dict[str, str]:
    prefix = source.get("prefix", "")
    for kind, field in (("configmaps", "configMapRef"), ("secrets", "secretRef")):
        if reference := source.get(field):
            optional = bool(reference.get("optional"))
            item = sources.find(kind, reference["name"], optional=optional)  # type: ignore[arg-type]
            content = data_of(kind, item) if item else {}
            return {prefix + key: value.decode() for key, value in content.items()}
    return {}


def _origin_value(
    origin: Object,
    container: Object,
    pod: Object,
    sources: Sources,
    allocatable: Mapping[str, str],
) -> str | None:
    if reference := origin.get("configMapKeyRef"):
        return _key(sources, "configmaps", reference)
    if reference := origin.get("secretKeyRef"):
        return _key(sources, "secrets", reference)
    if reference := origin.get("fieldRef"):
        return field_value(pod, reference["fieldPath"])
    if reference := origin.get("resourceFieldRef"):
        return resource_value(container, reference, allocatable)
    raise ValueError(f"valueFrom {sorted(origin)} is not supported")


def _key(sources: Sources, kind: Any, reference: Object) -> str | None:
    optional = bool(reference.get("optional"))
    item = sources.find(kind, reference["name"], optional=optional)
    content = data_of(kind, item) if item else {}
    if reference["key"] in content:
        return content[reference["key"]].decode()
    if optional:
        return None
    raise MissingReference(f'key "{reference["key"]}" not found in {kind} "{reference["name"]}"')


def command_line(container: Object, variables: Mapping[str, str]) -> list[str]:
    """Return command and arguments, expanded. Raises ValueError if there is no command."""
    if not container.get("command"):
        raise ValueError("containers run as processes, without an image: set `command`")
    words = [*container["command"], *container.get("args", [])]
    return [expand(word, variables) for word in words]
