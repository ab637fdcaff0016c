"""A filter on rows as a Spark expression."""

import json
from collections.abc import Mapping
from typing import Any

from streamgraft_common.shared_streams.expressions import (
    Both,
    Compared,
    Contained,
    Either,
    Expression,
    ExpressionError,
    Negated,
    Scalar,
)

_INTEGERS = ("byte", "short", "integer", "long")
_FLOATS = ("float", "double")
_OPERATORS = {"==": "=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


def to_sql(row_filter: Expression, schema: Mapping[str, Any]) -> str:
    """Return the Spark expression of a filter; `schema`: Spark's JSON form of a StructType.

    A test of null is false, so the expression is never null. Raises ExpressionError.
    """
    types = {field["name"]: field["type"] for field in schema["fields"]}
    return _sql(row_filter, types)


def _sql(expression: Expression, types: Mapping[str, Any]) -> str:
    match expression:
        case Both(operands):
            return f"({' and '.join(_sql(operand, types) for operand in operands)})"
        case Either(operands):
            return f"({' or '.join(_sql(operand, types) for operand in operands)})"
        case Negated(operand):
            return f"(not {_sql(operand, types)})"
        case Contained(value, name, column):
            items = _items(_type(name, column, types), name, column)
            _check(items, value, name, column)
            return f"coalesce(array_contains({_quoted(name)}, {_literal(value, items)}), false)"
        case Compared():
            return _compared(expression, types)


def _compared(test: Compared, types: Mapping[str, Any]) -> str:
    name, column = test.name, test.column
    found, text = _type(name, column, types), _quoted(name)
    if test.index is not None:
        found, text = _items(found, name, column), f"get({text}, {test.index})"
    if isinstance(test.value, tuple):
        items = _items(found, name, column)
        for item in test.value:
            _check(items, item, name, column)
        value = f"array({', '.join(_literal(item, items) for item in test.value)})"
    else:
        _check(found, test.value, name, column)
        value = _literal(test.value, found)
    if test.modulus is not None:
        if found not in _INTEGERS:
            raise ExpressionError(column, f"{name} is no integer: it has no modulus")
        text = f"({text} % {test.modulus})"
    return f"coalesce({text} {_OPERATORS[test.comparison]} {value}, false)"


def _type(name: str, column: int, types: Mapping[str, Any]) -> Any:
    if name not in types:
        raise ExpressionError(column, f"there is no column {name}; there are {', '.join(types)}")
    return types[name]


def _items(found: Any, name: str, column: int) -> Any:
    if not isinstance(found, Mapping) or found.get("type") != "array":
        raise ExpressionError(column, f"{name} is no list")
    return found["elementType"]


def _check(found: Any, value: Scalar, name: str, column: int) -> None:
    if not isinstance(found, str) or found not in (*_INTEGERS, *_FLOATS, "string"):
        raise ExpressionError(column, f"{name} is no integer, float or string")
    if (found == "string") != isinstance(value, str):
        wanted = "a string" if found == "string" else "a number"
        raise ExpressionError(column, f"{name} is {wanted}, and {json.dumps(value)} is none")


def _quoted(name: str) -> str:
    return f"`{name}`"


def _literal(value: Scalar, found: Any) -> str:
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        # Spark replaces "${name}" by what variables, properties and the environment have.
        escaped = escaped.replace("$", "\\u0024")
        return f"'{escaped}'"
    if isinstance(value, float) or found in _FLOATS:
        return f"cast('{value!r}' as double)"
    return f"cast('{value}' as bigint)"
