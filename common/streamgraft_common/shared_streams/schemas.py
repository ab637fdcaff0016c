"""Whether what an export has is what an import reads."""

import json
from collections.abc import Mapping
from typing import Any

_WIDER = {
    "byte": {"short", "integer", "long", "float", "double"},
    "short": {"integer", "long", "float", "double"},
    "integer": {"long", "double"},
    "float": {"double"},
}


DEEPEST = 64
"""Types within each other. Whatever compares schemas follows them on the stack."""
_INNER = {"array": ("elementType",), "map": ("keyType", "valueType")}
"""Of types that have others within, besides structs."""


def read_schema(text: str) -> Mapping[str, Any]:
    """Return a schema of an Import or Export, Spark's JSON form of a StructType; '' has no columns.

    Raises ValueError for anything else: users may edit the resource.
    """
    try:
        schema = json.loads(text) if text else {"fields": []}
        _check_struct(schema, 0)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"its schema is not the JSON form of a Spark StructType: {error}"
        ) from error
    found: Mapping[str, Any] = schema
    return found


def _check_struct(schema: Any, depth: int) -> None:
    fields = schema.get("fields") if isinstance(schema, dict) else None
    if not isinstance(fields, list):
        raise ValueError("it has no list of fields")
    for field in fields:
        if not isinstance(field, dict) or not isinstance(field.get("name"), str):
            raise ValueError("it has a field without a name")
        _check_type(field.get("type"), field["name"], depth + 1)


def _check_type(spark_type: Any, column: str, depth: int) -> None:
    if depth > DEEPEST:
        raise ValueError(f"it has more than {DEEPEST} types within each other")
    if isinstance(spark_type, str):
        return
    kind = spark_type.get("type") if isinstance(spark_type, dict) else None
    if kind == "struct":
        _check_struct(spark_type, depth)
    elif isinstance(kind, str) and kind in _INNER:
        for name in _INNER[kind]:
            _check_type(spark_type.get(name), column, depth + 1)
    else:
        raise ValueError(f"column {column} has no type that is known")


def misfit(wanted: Mapping[str, Any], exported: Mapping[str, Any]) -> str:
    """Return why an import can't read an export; '' if it can.

    Both are Spark's JSON form of a StructType. Each column of the import must be one of the export,
    of the same type or a narrower number; what the export has besides is left out.
    """
    there = {field["name"]: field["type"] for field in exported["fields"]}
    for field in wanted["fields"]:
        name = field["name"]
        if name not in there:
            return f"it has no column {name} (it has {', '.join(there)})"
        if not _fits(field["type"], there[name]):
            return f"its column {name} is {_text(there[name])}, not {_text(field['type'])}"
    return ""


def _fits(wanted: Any, found: Any) -> bool:
    if isinstance(wanted, str) and isinstance(found, str):
        return wanted == found or wanted in _WIDER.get(found, ())
    if isinstance(wanted, str) or isinstance(found, str):
        return False
    if wanted["type"] != found["type"]:
        return False
    if wanted["type"] == "struct":
        return not misfit(wanted, found)
    return all(_fits(wanted[name], found[name]) for name in _INNER[wanted["type"]])


def _text(spark_type: Any) -> str:
    return spark_type if isinstance(spark_type, str) else json.dumps(spark_type)
