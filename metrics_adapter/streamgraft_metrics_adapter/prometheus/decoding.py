"""Prometheus' answers, decoded row by row while they are read.

`json.loads` of the rows of thousands of regions keeps Python's lock for some 30 ms, in which
nothing else is served, and makes all of them objects at once.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import requests

_RESULT = re.compile(r'"result"\s*:\s*\[')
_BETWEEN = re.compile(r"[\s,]*")
_decode = json.JSONDecoder().raw_decode


def elements(text: str) -> Iterator[Any]:
    """Yield the elements of the result vector of a query's answer. Raises ValueError, late."""
    begin = _RESULT.search(text)
    if begin is None:
        raise ValueError(f"no vector: {text[:200]!r}")
    place = _after_gap(text, begin.end())
    while not text.startswith("]", place):
        element, place = _decode(text, place)
        yield element
        place = _after_gap(text, place)


def _after_gap(text: str, place: int) -> int:
    found = _BETWEEN.match(text, place)
    return found.end() if found else place


class _Answer(requests.Response):
    """An answer to a query, whose result is an iterator."""

    def json(self, **options: Any) -> Any:
        return {"data": {"result": elements(self.content.decode())}}


class QuerySession(requests.Session):
    """The session for a client that sends nothing but queries."""

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        """Send a request; a result comes as an iterator of `elements`."""
        answer = _Answer()
        vars(answer).update(vars(super().send(request, **options)))
        return answer
