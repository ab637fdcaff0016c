"""What a request asks for, in the terms of authorization.

Paths of API groups are read as the API server's own RequestInfo reads them, so that the same RBAC
rules hold whether a request comes through the aggregator or straight.
"""

from collections.abc import Mapping
from typing import Any

from streamgraft_common import names
from streamgraft_common.resources import PARALLEL_REGION

Attributes = Mapping[str, Any]
"""`resourceAttributes` or `nonResourceAttributes` of a SubjectAccessReview, with their key."""

_REST = ("api", "v1", "namespaces")


def attributes(method: str, path: str) -> Attributes:
    """Return the part of a SubjectAccessReview's spec that describes this request."""
    parts = [part for part in path.split("/") if part]
    if len(parts) > 3 and parts[0] == "apis":
        return _resource(_group_resource(method, parts))
    if len(parts) >= 5 and tuple(parts[:3]) == _REST and parts[4] == "regions":
        return _resource(_region(method, parts[3], parts[5:]))
    return {"nonResourceAttributes": {"path": path, "verb": method.lower()}}


def _resource(values: Mapping[str, str]) -> Attributes:
    return {"resourceAttributes": {key: value for key, value in values.items() if value}}


def _group_resource(method: str, parts: list[str]) -> dict[str, str]:
    group, version, rest = parts[1], parts[2], parts[3:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        # /namespaces/<name> itself describes the namespace.
        rest = rest[2:] if len(rest) > 2 else rest
    resource, name, subresource = [*rest, "", "", ""][:3]
    verb = "get" if method in ("GET", "HEAD") else method.lower()
    return {
        "group": group,
        "version": version,
        "namespace": namespace,
        "resource": resource,
        "name": name,
        "subresource": subresource,
        "verb": "list" if verb == "get" and not name else verb,
    }


def _region(method: str, namespace: str, rest: list[str]) -> dict[str, str]:
    name = rest[0] if rest else ""
    scale = len(rest) > 1 and rest[1] == "scale"
    reading = method in ("GET", "HEAD")
    return {
        "group": names.GROUP,
        "version": names.VERSION,
        "namespace": namespace,
        "resource": PARALLEL_REGION.plural,
        "name": name,
        "subresource": "scale" if scale else "",
        # What the adapter does for the caller is a patch of /scale.
        "verb": ("get" if name else "list") if reading else "patch",
    }
