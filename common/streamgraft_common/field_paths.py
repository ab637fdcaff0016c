"""Fields of objects by paths, as probes name them. Pure.

`status.width`; `status.conditions[type=Ready].status` chooses the entry of a list whose field has a
value, and `spec.containers[0].image` one by its place. `metadata.annotations['a.b/c']` is for names
with dots and other signs. What is meant as JSONPath or as a Go template is refused: such a path
would be of no field for ever.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

_PART = re.compile(
    r"(?:\A|(?!\A)\.)(?P<name>[\w/:-]+)"
    r"|\[(?P<place>\d+)\]"
    r"|\['(?P<quoted>[^']+)'\]"
    r"|\[(?P<key>[^=\]]+)=(?P<value>(?![\s='\"])[^\]]*)(?<!\s)\]"
)


class NoPath(ValueError):
    """A text that is no path of a field; it says where it ends to be one."""


def check(path: str) -> None:
    """Raise NoPath for a text that is no path."""
    for part in _parts(path):
        if part["key"]:
            check(part["key"])


def text_at(item: Mapping[str, Any] | None, path: str) -> str | None:
    """Return the field at a path as text, None if there is none. Raises NoPath.

    What is neither text nor absent is written as JSON: 2, true.
    """
    node: Any = item
    for part in _parts(path):
        node = _below(node, part)
    if node is None or isinstance(node, str):
        return node
    return json.dumps(node)


def _parts(path: str) -> list[re.Match[str]]:
    parts: list[re.Match[str]] = []
    at = 0
    while at < len(path) or not parts:
        if (part := _PART.match(path, at)) is None:
            raise NoPath(
                f"{path!r} is no path of a field (from {path[at:]!r} on): write it as a.b, a[0],"
                " a[type=Ready] or a['name.with/dots']"
            )
        parts.append(part)
        at = part.end()
    return parts


def _below(node: Any, part: re.Match[str]) -> Any:
    if (name := part["name"] or part["quoted"]) is not None:
        return node.get(name) if isinstance(node, Mapping) else None
    if not isinstance(node, list):
        return None
    if (place := part["place"]) is not None:
        return node[int(place)] if int(place) < len(node) else None
    return next((entry for entry in node if _has(entry, part["key"], part["value"])), None)


def _has(entry: Any, key: str, value: str) -> bool:
    return isinstance(entry, Mapping) and text_at(entry, key) == value
