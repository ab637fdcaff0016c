"""Which kinds the fake API server knows, what paths mean, and what selectors match."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from streamgraft_common import kinds, names
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.errors import ApiError, NotFound
from streamgraft_common.resources import KINDS

Selector = Callable[[Object], bool]


@dataclass(frozen=True, eq=False)
class FakeResource:
    """One namespaced kind: each is there once, and equal to no other.

    Custom resources have generations, and their lists name their kind.
    """

    api_version: str
    kind: str
    plural: str
    custom: bool = False
    has_status: bool = False

    def path(self, namespace: str, name: str) -> str:
        """Return the URL path of an object."""
        root = "apis" if "/" in self.api_version else "api"
        return f"/{root}/{self.api_version}/namespaces/{namespace}/{self.plural}/{name}"


WITH_STATUS = ("pods", "services", "nodes")
"""Built-in kinds whose status is a subresource."""

_RESOURCES = (
    *(FakeResource(names.API_VERSION, kind.kind, kind.plural, True, True) for kind in KINDS),
    *(
        FakeResource(
            kind.api_version, kind.kind, kind.plural, has_status=kind.plural in WITH_STATUS
        )
        for kind in vars(kinds).values()
        if isinstance(kind, kinds.Kind)
    ),
)
_BY_PLACE = {(resource.api_version, resource.plural): resource for resource in _RESOURCES}


@dataclass(frozen=True)
class Place:
    """What a path means. Without a name: a collection; without a namespace: in all namespaces."""

    resource: FakeResource
    namespace: str
    name: str
    subresource: str


_PLACES: dict[str, Place] = {}


def place_of(path: str) -> Place:
    """Return what a path means. Raises NotFound for kinds that the server does not have."""
    if path not in _PLACES:
        _PLACES[path] = _parsed(path)
    return _PLACES[path]


def _parsed(path: str) -> Place:
    root, *parts = path.strip("/").split("/")
    depth = 1 if root == "api" else 2
    version, rest = "/".join(parts[:depth]), parts[depth:]
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    resource = _BY_PLACE.get((version, rest[0])) if rest else None
    if resource is None:
        raise NotFound(404, "NotFound", f"the server could not find the requested resource {path}")
    name, subresource = (*rest[1:], "", "")[:2]
    return Place(resource, namespace, name, subresource)


def selector_of(query: Mapping[str, str]) -> Selector | None:
    """Return the predicate of labelSelector and fieldSelector, None if everything matches."""
    labels = [_label_term(term) for term in _terms(query.get("labelSelector", ""))]
    fields = [_field_term(term) for term in _terms(query.get("fieldSelector", ""))]
    terms = labels + fields
    return (lambda item: all(term(item) for term in terms)) if terms else None


def _terms(text: str) -> list[str]:
    return [term.strip() for term in text.split(",") if term.strip()]


def _label_term(term: str) -> Selector:
    if any(word in term for word in ("(", " in ", " notin ")):
        raise ApiError(501, "NotImplemented", f"the fake API server can't select by {term!r}")
    if "!=" in term:
        label, _, value = term.partition("!=")
        return lambda item: _labels(item).get(label) != value
    if "=" in term:
        label, _, value = term.replace("==", "=").partition("=")
        return lambda item: _labels(item).get(label) == value
    if term.startswith("!"):
        return lambda item: term[1:] not in _labels(item)
    return lambda item: term in _labels(item)


def _labels(item: Object) -> Mapping[str, str]:
    labels: Mapping[str, str] = item["metadata"].get("labels") or {}
    return labels


def _field_term(term: str) -> Selector:
    path, _, value = term.replace("==", "=").partition("=")

    def matches(item: Object) -> bool:
        node: object = item
        for step in path.split("."):
            node = node.get(step) if isinstance(node, dict) else None
        return (node or "") == value

    return matches
