"""JSON merge patch and server-side apply, without changing what they are given.

Objects are shared between the fake API server and everyone who reads, so nothing is ever changed
in place: a patched object is new along the changed paths and shares the rest.
"""

from collections.abc import Mapping
from typing import Any

FieldPath = tuple[str, ...]


def merged(target: Any, patch: Any) -> Any:
    """Return `target` after a JSON merge patch (RFC 7396)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def fields_of(document: Mapping[str, Any], path: FieldPath = ()) -> frozenset[FieldPath]:
    """Return the paths of all leaves; lists are leaves."""
    result: set[FieldPath] = set()
    for key, value in document.items():
        if isinstance(value, Mapping) and value:
            result |= fields_of(value, (*path, key))
        else:
            result.add((*path, key))
    return frozenset(result)


def without(document: Mapping[str, Any], path: FieldPath) -> dict[str, Any]:
    """Return the document without one field."""
    result = dict(document)
    head, *rest = path
    if not rest:
        result.pop(head, None)
    elif isinstance(result.get(head), Mapping):
        result[head] = without(result[head], tuple(rest))
    return result
