"""Columns of a stream between processing elements: how they are noted, and compared. Pure."""

from collections.abc import Mapping
from typing import Any

MALFORMED = "streamgraft_malformed"
"""Field in which Spark's JSON decoder leaves what it could not read, which no stream may have.

By default it takes `_corrupt_record`, also where a stream has such a column, and gives that back
as null.
"""
_WIDER = {
    ("byte", "short"),
    ("byte", "integer"),
    ("byte", "long"),
    ("short", "integer"),
    ("short", "long"),
    ("integer", "long"),
    ("float", "double"),
}
"""Types of records and of their reader that differ, and read the same from JSON."""


def columns_of(schema: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the type of each column of a schema (JSON form of Spark's StructType), as text; None
    if it is no such schema, as anybody may write one into a bundle."""
    try:
        return {str(field["name"]): _text(field["type"]) for field in schema["fields"]}
    except (KeyError, TypeError, RecursionError):
        return None


def difference(old: Mapping[str, str], new: Mapping[str, str]) -> str:
    """Return what a reader of new columns would not find in records of old ones, or what a reader
    of the old ones would not find in new records; '' if they read the same."""
    changed = [
        f"{name} is {new[name]} and was {old[name]}"
        for name in old.keys() & new.keys()
        if not _reads(old[name], new[name])
    ]
    new_ones, gone = sorted(new.keys() - old.keys()), sorted(old.keys() - new.keys())
    parts = [f"{name} is new" for name in new_ones] + [f"{name} is gone" for name in gone]
    return ", ".join([*parts, *sorted(changed)])


def lacking(told: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """Return the columns that a reader is told of and would not find in records, with types."""
    return [
        f"{name} {kind}"
        for name, kind in told.items()
        if name not in found or not _reads(found[name], kind)
    ]


def _reads(written: str, read: str) -> bool:
    return written == read or (written, read) in _WIDER


def _text(kind: Any) -> str:
    if isinstance(kind, str):
        return kind
    if kind["type"] == "struct":
        inner = [f"{field['name']}: {_text(field['type'])}" for field in kind["fields"]]
    elif kind["type"] == "array":
        inner = [_text(kind["elementType"])]
    elif kind["type"] == "map":
        inner = [_text(kind["keyType"]), _text(kind["valueType"])]
    else:
        return str(kind["type"])  # a type of the user's
    return f"{kind['type']}<{', '.join(inner)}>"
