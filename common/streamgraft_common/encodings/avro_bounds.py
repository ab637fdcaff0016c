"""Avro types whose records are not bounded by their bytes. Pure.

Who writes a record decides how deep types that contain themselves are nested, and how many items
an array has. fastavro follows the former on the process's own stack, and ends the process where
that ends; of items without bytes a record of ten bytes may have 2^63.
"""

from typing import Any


def check_bounded(schema: Any) -> None:
    """Raise ValueError if a schema, as fastavro has parsed it, has a type that contains itself,
    or an array of items that take no bytes."""
    _Walk().follow(schema, ())


class _Walk:
    def __init__(self) -> None:
        self._empty: dict[str, bool] = {}
        """By the full names of types: whether they take no bytes."""

    def follow(self, schema: Any, within: tuple[str, ...]) -> bool:
        """Return whether a value takes no bytes; `within`: full names of the records around it."""
        if isinstance(schema, str):
            if schema in within:
                raise ValueError(
                    f"type {schema} contains itself, which no type of Spark can: "
                    "leave that field out"
                )
            return schema == "null" or self._empty.get(schema, False)
        if isinstance(schema, list):
            for item in schema:
                self.follow(item, within)
            return False  # which of its types it is takes a byte
        kind = schema["type"]
        if kind in ("record", "error"):
            inside = (*within, schema["name"])
            fields = [self.follow(field["type"], inside) for field in schema["fields"]]
            self._empty[schema["name"]] = all(fields)
            return all(fields)
        if kind == "fixed":
            self._empty[schema["name"]] = schema["size"] == 0
            return self._empty[schema["name"]]
        if kind == "array":
            if self.follow(schema["items"], within):
                raise ValueError(
                    "an array's items take no bytes, so that a small record may have any number "
                    "of them: leave that field out"
                )
            return False
        if kind == "map":
            self.follow(schema["values"], within)
            return False
        return self.follow(kind, within) if kind != "enum" else False
