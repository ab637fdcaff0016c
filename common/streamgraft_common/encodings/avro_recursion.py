"""Avro types that contain themselves. Pure.

No column of Spark has such a type. And who writes records of it decides how deep they are nested:
fastavro follows them on the process's own stack, and ends the process where that ends.
"""

from typing import Any


def check_not_recursive(schema: Any, within: tuple[str, ...] = ()) -> None:
    """Raise ValueError if a schema, as fastavro has parsed it, has a type that contains itself.

    `within`: the full names of the records around it.
    """
    if isinstance(schema, str):
        if schema in within:
            raise ValueError(
                f"type {schema} contains itself, which no type of Spark can: leave that field out"
            )
    elif isinstance(schema, list):
        for item in schema:
            check_not_recursive(item, within)
    elif isinstance(schema, dict):
        if schema.get("type") in ("record", "error"):
            for field in schema["fields"]:
                check_not_recursive(field["type"], (*within, schema["name"]))
        else:
            for part in ("type", "items", "values"):
                check_not_recursive(schema.get(part), within)
