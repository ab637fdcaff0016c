"""Columns of streams, noted as text and compared."""

from typing import Any

import pytest

from streamgraft_common.columns import columns_of, difference

PLACE = {
    "type": "struct",
    "fields": [
        {"name": "lat", "type": "double"},
        {"name": "tags", "type": {"type": "array", "elementType": "string"}},
        {"name": "sizes", "type": {"type": "map", "keyType": "string", "valueType": "long"}},
    ],
}


def test_types_are_written_out() -> None:
    schema = {"type": "struct", "fields": [{"name": "place", "type": PLACE}]}
    text = "struct<lat: double, tags: array<string>, sizes: map<string, long>>"
    assert columns_of(schema) == {"place": text}


@pytest.mark.parametrize(
    "schema", [{}, {"fields": 1}, {"fields": ["n"]}, {"fields": [{"name": "n", "type": {}}]}]
)
def test_anything_else_has_none(schema: dict[str, Any]) -> None:
    assert columns_of(schema) is None


@pytest.mark.parametrize(
    ("new", "said"),
    [
        ({"k": "string", "n": "integer"}, ""),
        ({"n": "integer", "k": "string"}, ""),
        ({"k": "string", "n": "long"}, ""),
        ({"k": "string", "n": "short"}, "n is short and was integer"),
        ({"k": "string", "m": "integer"}, "m is new, n is gone"),
        ({"k": "integer"}, "n is gone, k is integer and was string"),
    ],
)
def test_what_a_reader_would_miss(new: dict[str, str], said: str) -> None:
    assert difference({"k": "string", "n": "integer"}, new) == said
