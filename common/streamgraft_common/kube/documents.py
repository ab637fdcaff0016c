"""JSON of the API server. Pure.

It takes objects of some thousand levels, of whoever may write a field that is open; Python's reader
ends at a thousand. One such object must not keep its reader from all others.
"""

import json
import re
from typing import Any

DEEPEST = 100
"""Levels of an object that is deeper than Python reads; null is read for what is below."""
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]')


def loads(text: str | bytes) -> Any:
    """Return what a JSON text says. Raises ValueError."""
    try:
        return json.loads(text)
    except RecursionError:
        return json.loads(_cut(text if isinstance(text, str) else text.decode()))


def _cut(text: str) -> str:
    """Return a JSON text with null for what is more than DEEPEST levels deep."""
    parts: list[str] = []
    level = done = 0
    for found in _TOKEN.finditer(text):
        token = found[0]
        if token in "[{":
            level += 1
            if level == DEEPEST + 1:
                parts.append(text[done : found.start()])
        elif token in "]}":
            level -= 1
            if level == DEEPEST:
                parts.append("null")
                done = found.end()
    return "".join([*parts, text[done:]])
