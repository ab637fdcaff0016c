"""Which columns can be written as which fields of messages.

What is refused here would fail for every row, or be written as something else: texts are taken for
the base64 of bytes.
"""

from collections.abc import Iterator
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from streamgraft_common.encodings.columns import (
    NUMBERS,
    WRITTEN_AS_TEXT,
    Columns,
    Form,
    form,
    shown,
)

WELL_KNOWN = "google.protobuf."
_TIMESTAMP = "google.protobuf.Timestamp"
_NUMERIC: frozenset[Form] = NUMBERS | {"text"}
_TAKES: dict[int, tuple[str, frozenset[Form]]] = {
    FieldDescriptor.CPPTYPE_INT32: ("int32", _NUMERIC),
    FieldDescriptor.CPPTYPE_INT64: ("int64", _NUMERIC),
    FieldDescriptor.CPPTYPE_UINT32: ("uint32", _NUMERIC),
    FieldDescriptor.CPPTYPE_UINT64: ("uint64", _NUMERIC),
    FieldDescriptor.CPPTYPE_FLOAT: ("float", _NUMERIC),
    FieldDescriptor.CPPTYPE_DOUBLE: ("double", _NUMERIC),
    FieldDescriptor.CPPTYPE_BOOL: ("bool", frozenset({"boolean"})),
    FieldDescriptor.CPPTYPE_ENUM: ("enum", frozenset({"text", "whole"})),
    FieldDescriptor.CPPTYPE_STRING: ("string", WRITTEN_AS_TEXT),
    FieldDescriptor.CPPTYPE_MESSAGE: ("message", frozenset({"struct"})),
}
_BYTES: tuple[str, frozenset[Form]] = ("bytes", frozenset({"binary"}))


def misfits(columns: Columns, message: Descriptor, at: str = "") -> Iterator[str]:
    """Yield why columns can't be written as a message; `at` is where that is: `place.`."""
    types = {column["name"]: column["type"] for column in columns}
    fields = message.fields_by_name
    if strange := [at + name for name in types if name not in fields]:
        yield f"the message has no field {', '.join(strange)}"
    if missing := [at + f.name for f in message.fields if f.is_required and f.name not in types]:
        yield f"the message wants {', '.join(missing)}"
    for name, data_type in types.items():
        if name in fields:
            yield from _misfits(data_type, fields[name], at + name)


def _misfits(column: Any, field: FieldDescriptor, at: str) -> Iterator[str]:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        value = field.message_type.fields_by_name["value"]
        yield from _several(column, "map", "valueType", value, at)
    elif field.is_repeated:
        yield from _several(column, "array", "elementType", field, at)
    else:
        yield from _single(column, field, at)


def _several(
    column: Any, wanted: Form, inner: str, field: FieldDescriptor, at: str
) -> Iterator[str]:
    found = form(column)
    if found == wanted:
        yield from _single(column[inner], field, f"{at}[]")
    elif found:
        yield _refused(at, column, f"{wanted} of {_taken(field)[0]}")


def _single(column: Any, field: FieldDescriptor, at: str) -> Iterator[str]:
    name, takes = _taken(field)
    found = form(column)
    if found and takes and found not in takes:
        yield _refused(at, column, name)
    elif found == "struct" and takes:
        yield from misfits(column["fields"], field.message_type, f"{at}.")


def _taken(field: FieldDescriptor) -> tuple[str, frozenset[Form]]:
    """Return the name of a field's type and what it takes; nothing if we do not know."""
    if field.message_type is not None and field.message_type.full_name.startswith(WELL_KNOWN):
        name = field.message_type.full_name
        return name, frozenset({"timestamp", "text"} if name == _TIMESTAMP else ())
    if field.type == FieldDescriptor.TYPE_BYTES:
        return _BYTES
    return _TAKES[field.cpp_type]


def _refused(at: str, column: Any, name: str) -> str:
    return f"{at} is of type {shown(column)}, which can't be written as {name}"
