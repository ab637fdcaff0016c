"""Which columns can be written as which types of Avro. Pure.

What is refused here would fail for every row, or be written as something else: fastavro takes any
value for a boolean, and the whole part of any number for a long.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from streamgraft_common.encodings.columns import (
    NUMBERS,
    WRITTEN_AS_TEXT,
    Columns,
    Form,
    decimal_scale,
    form,
    shown,
)

_TAKES: dict[str, frozenset[Form]] = {
    "null": frozenset(),
    "boolean": frozenset({"boolean"}),
    "int": frozenset({"whole"}),
    "long": frozenset({"whole"}),
    "float": NUMBERS | {"text"},
    "double": NUMBERS | {"text"},
    "bytes": frozenset({"binary"}),
    "fixed": frozenset({"binary"}),
    "string": WRITTEN_AS_TEXT,
    "enum": frozenset({"text"}),
    "array": frozenset({"array"}),
    "map": frozenset({"map"}),
    "record": frozenset({"struct"}),
    # logical types, which the codec makes of texts
    "decimal": NUMBERS | {"text"},
    "date": frozenset({"date", "text"}),
    "time-millis": frozenset({"text"}),
    "time-micros": frozenset({"text"}),
    "timestamp": frozenset({"timestamp", "timestamp_ntz", "date", "text", "whole"}),
}


def only_type(union: list[Any]) -> Any:
    """Return what a union has besides null. Raises ValueError if that is not one type."""
    found = [item for item in union if item != "null"]
    if len(found) != 1:
        raise ValueError("of unions only those of null and one type can be written")
    return found[0]


def misfits(columns: Columns, record: Any, named: Mapping[str, Any], at: str = "") -> Iterator[str]:
    """Yield why columns can't be written as a record; `at` is where that is: `place.`."""
    types = {column["name"]: column["type"] for column in columns}
    fields = {field["name"]: field for field in record["fields"]}
    if strange := [at + name for name in types if name not in fields]:
        yield f"the schema has no field {', '.join(strange)}"
    if missing := [at + name for name in fields if name not in types and _needed(fields[name])]:
        yield f"the schema wants {', '.join(missing)}"
    for name, data_type in types.items():
        if name in fields:
            yield from _misfits(data_type, fields[name]["type"], named, at + name)


def _needed(field: Mapping[str, Any]) -> bool:
    nullable = isinstance(field["type"], list) and "null" in field["type"]
    return "default" not in field and not nullable


def _misfits(column: Any, schema: Any, named: Mapping[str, Any], at: str) -> Iterator[str]:
    schema = named.get(schema, schema) if isinstance(schema, str) else schema
    if isinstance(schema, list):
        try:
            single = only_type(schema)
        except ValueError as error:
            yield f"{at}: {error}"
        else:
            yield from _misfits(column, single, named, at)
        return
    kind = schema["type"] if isinstance(schema, dict) else schema
    logical = schema.get("logicalType", "") if isinstance(schema, dict) else ""
    name = "timestamp" if "timestamp" in logical else logical if logical in _TAKES else kind
    scale = decimal_scale(column)
    if (found := form(column)) and found not in _TAKES.get(name, {found}):
        yield f"{at} is of type {shown(column)}, which can't be written as {logical or kind}"
    elif logical == "decimal" and scale is not None and scale > schema.get("scale", 0):
        yield f"{at} has {scale} decimal places, the schema {schema.get('scale', 0)}"
    elif found == "array" and kind == "array":
        yield from _misfits(column["elementType"], schema["items"], named, f"{at}[]")
    elif found == "map" and kind == "map":
        yield from _misfits(column["valueType"], schema["values"], named, f"{at}[]")
    elif found == "struct" and kind == "record":
        yield from misfits(column["fields"], schema, named, f"{at}.")
