"""Avro types that contain themselves. Pure.

No column of Spark has such a type. And who writes records of it decides how deep they are nested:
fastavro follows them on the process's own stack, and ends the process where that ends.
"""

from typing import Any

_NAMED = ("record", "error")


def check_not_recursive(schema: Any) -> None:
    """Raise ValueError if a schema, as it is written in JSON, has a type that contains itself.

    Names are compared as `parse_schema` of fastavro leaves them, with their namespaces, or as they
    are written; one that is ambiguous counts as recursive.
    """
    _check(schema, ())


def _check(schema: Any, within: tuple[str, ...]) -> None:
    if isinstance(schema, str):
        if schema.rpartition(".")[2] in within:
            raise ValueError(
                f"type {schema} contains itself, which no type of Spark can: leave that field out"
            )
    elif isinstance(schema, list):
        for item in schema:
            _check(item, within)
    elif isinstance(schema, dict):
        if schema.get("type") in _NAMED:
            name = str(schema.get("name", "")).rpartition(".")[2]
            for field in schema.get("fields", ()):
                _check(field.get("type"), (*within, name))
        else:
            for part in ("type", "items", "values"):
                _check(schema.get(part), within)
