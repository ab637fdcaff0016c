"""What a request asks for, in the terms of authorization.

Paths of API groups are read as the API server's own RequestInfo reads them, so that the same RBAC
rules hold whether a request comes through the aggregator or straight.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from streamgraft_common import names
from streamgraft_common.resources import PARALLEL_REGION

OPEN_PATHS = frozenset({"/healthz", "/livez", "/readyz"})
"""Anybody may ask there."""
_CONSOLE = "/console"
_CONSOLE_API = "/console/api/"


@dataclass(frozen=True, slots=True)
class Attributes:
    """Attributes of a request; empty texts mean all, as in a SubjectAccessReview."""

    verb: str
    path: str = ""
    """Of a request for a path that is no resource, which has a verb besides and nothing else."""
    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""

    def from_widest(self) -> Iterator["Attributes"]:
        """Yield it for all objects of the cluster, for all of its namespace, and as it is."""
        if self.path:
            yield self
            return
        # Spelled out: most requests need no more than this one, and `replace` takes its time.
        kind = self.verb, "", self.group, self.version
        yield Attributes(*kind, resource=self.resource, subresource=self.subresource)
        if self.namespace:
            yield replace(self, name="")
        if self.name:
            yield self

    def to_wire(self) -> dict[str, Any]:
        """Return the part of a SubjectAccessReview's spec that describes it."""
        if self.path:
            return {"nonResourceAttributes": {"path": self.path, "verb": self.verb}}
        keys = ("verb", "group", "version", "namespace", "resource", "subresource", "name")
        values = {key: getattr(self, key) for key in keys}
        return {"resourceAttributes": {key: value for key, value in values.items() if value}}

    def __str__(self) -> str:
        """Return it in the words of the API server."""
        if self.path:
            return f'{self.verb} path "{self.path}"'
        wanted = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        place = f' in the namespace "{self.namespace}"' if self.namespace else ""
        return f'{self.verb} resource "{wanted}" in API group "{self.group}"{place}'


def attributes_of(method: str, path: str) -> Attributes:
    """Return what a request asks for."""
    parts = [part for part in path.split("/") if part]
    if len(parts) > 3 and parts[0] == "apis":
        return _of_group(method, parts)
    if len(parts) >= 5 and parts[:3] == ["api", "v1", "namespaces"]:
        if parts[4] == "regions":
            return _of_regions(method, parts[3], parts[5:])
        if parts[4:] == ["stream"]:
            return replace(_of_regions(method, parts[3], []), verb="watch")
    return Attributes(verb=method.lower(), path=path)


def is_page(path: str) -> bool:
    """Return whether it is a file of the console, which has nothing of any cluster in it."""
    inside = path == _CONSOLE or path.startswith(f"{_CONSOLE}/")
    return inside and not path.startswith(_CONSOLE_API)


def is_callers_own(path: str) -> bool:
    """Return whether the API server authorizes it: it is asked with the caller's own token."""
    return path.startswith(_CONSOLE_API)


def is_stream(path: str) -> bool:
    """Return whether the answer to a request has no end."""
    return path.startswith("/api/v1/") and path.endswith("/stream")


def _of_group(method: str, parts: list[str]) -> Attributes:
    group, version, rest = parts[1], parts[2], parts[3:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        # /namespaces/<name> itself describes the namespace.
        rest = rest[2:] if len(rest) > 2 else rest
    resource, name, subresource = [*rest, "", "", ""][:3]
    verb = "get" if method in ("GET", "HEAD") else method.lower()
    return Attributes(
        verb="list" if verb == "get" and not name else verb,
        group=group,
        version=version,
        namespace=namespace,
        resource=resource,
        subresource=subresource,
        name=name,
    )


def _of_regions(method: str, namespace: str, rest: list[str]) -> Attributes:
    name = rest[0] if rest else ""
    scale = len(rest) > 1 and rest[1] == "scale"
    reading = "watch" if rest[1:] == ["stream"] else "get" if name else "list"
    return Attributes(
        # As the API server asks of a PUT to its own /scale.
        verb=reading if method in ("GET", "HEAD") else "update",
        group=names.GROUP,
        version=names.VERSION,
        namespace=namespace,
        resource=PARALLEL_REGION.plural,
        subresource="scale" if scale else "",
        name=name,
    )
