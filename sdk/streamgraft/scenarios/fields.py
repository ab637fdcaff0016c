"""Fields of objects by paths, as probes name them. Pure."""

import json
import re
from collections.abc import Mapping
from typing import Any

_PART = re.compile(r"([^.\[\]]+)|\[([^=\]]+)=([^\]]*)\]")


def text_at(item: Mapping[str, Any] | None, path: str) -> str | None:
    """Return the field at a path as text, None if there is none.

    `status.width`; `status.conditions[type=Ready].status` chooses the entry of a list whose field
    has a value. What is neither text nor absent is written as JSON: 2, true.
    """
    node: Any = item
    for name, key, value in _PART.findall(path):
        if name:
            node = node.get(name) if isinstance(node, Mapping) else None
        elif isinstance(node, list):
            node = next((entry for entry in node if text_at(entry, key) == value), None)
        else:
            node = None
    if node is None or isinstance(node, str):
        return node
    return json.dumps(node)
