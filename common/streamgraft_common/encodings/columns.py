"""What the values of columns are in a row's JSON, by Spark's own JSON of their types. Pure."""

import re
from collections.abc import Sequence
from typing import Any, Literal, TypedDict


class Column(TypedDict):
    """A field of Spark's schemas; its type is a name, or the JSON of an array, map or struct."""

    name: str
    type: Any


Columns = Sequence[Column]
Form = Literal[
    "text",
    "whole",
    "number",
    "boolean",
    "date",
    "timestamp",
    "timestamp_ntz",
    "binary",
    "array",
    "map",
    "struct",
]

WRITTEN_AS_TEXT: frozenset[Form] = frozenset(
    {"text", "date", "timestamp", "timestamp_ntz", "binary"}
)
NUMBERS: frozenset[Form] = frozenset({"whole", "number"})

_FORMS: dict[str, Form] = {
    "string": "text",
    "varchar": "text",
    "char": "text",
    "byte": "whole",
    "short": "whole",
    "integer": "whole",
    "long": "whole",
    "float": "number",
    "double": "number",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
    "binary": "binary",
    "array": "array",
    "map": "map",
    "struct": "struct",
}


def form(data_type: Any) -> Form | None:
    """Return what a column's values are, None if we do not know the type."""
    scale = decimal_scale(data_type)
    if scale is not None:
        return "number" if scale else "whole"
    return _FORMS.get(shown(data_type).partition("(")[0])


def decimal_scale(data_type: Any) -> int | None:
    """Return the scale of a decimal, None of any other type."""
    found = re.fullmatch(r"decimal\(\d+,\s*(-?\d+)\)", shown(data_type))
    return int(found[1]) if found else None


def shown(data_type: Any) -> str:
    """Return a type as a message tells it."""
    return str(data_type["type"] if isinstance(data_type, dict) else data_type)
