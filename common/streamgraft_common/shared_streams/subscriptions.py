"""Whether an export's properties meet a subscription."""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from streamgraft_common.shared_streams.expressions import (
    Both,
    Compared,
    Contained,
    Either,
    Expression,
    Negated,
)

Property = int | float | str | Sequence[int] | Sequence[float] | Sequence[str]
Properties = Mapping[str, Property]

_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def meets(properties: Properties, subscription: Expression) -> bool:
    """Return whether properties meet a subscription.

    A test of a property that is absent, or of another type, is false, whatever it compares.
    """
    match subscription:
        case Both(operands):
            return all(meets(properties, operand) for operand in operands)
        case Either(operands):
            return any(meets(properties, operand) for operand in operands)
        case Negated(operand):
            return not meets(properties, operand)
        case Contained(value, name):
            found = properties.get(name)
            return isinstance(found, list | tuple) and any(
                _alike(item, value) and item == value for item in found
            )
        case Compared():
            return _compared(properties.get(subscription.name), subscription)


def check_properties(properties: Mapping[str, object]) -> str:
    """Return what is wrong with an export's properties; '' if nothing is."""
    for name, value in properties.items():
        if not name.isidentifier() or not name.isascii() or name == "in":
            return f"{name!r} is no name of a property: use letters, digits and _"
        if isinstance(value, list | tuple):
            if not value or any(not _alike(item, value[0]) for item in value):
                return f"property {name} is {value!r}: a list has items, all numbers or all texts"
        elif isinstance(value, bool) or not isinstance(value, int | float | str):
            return f"property {name} is {value!r}: use a number, a text, or a list of them"
    return ""


def _compared(found: Property | None, test: Compared) -> bool:
    value: Any = found
    if test.index is not None:
        if not isinstance(value, list | tuple) or test.index >= len(value):
            return False
        value = value[test.index]
    if isinstance(test.value, tuple):
        if not isinstance(value, list | tuple) or not value or not _alike(value[0], test.value[0]):
            return False
        return (tuple(value) == test.value) == (test.comparison == "==")
    if not _alike(value, test.value):
        return False
    if test.modulus is not None:
        if not isinstance(value, int):
            return False
        # Of the sign of the dividend, as in SPL and SQL.
        value = abs(value) % test.modulus * (1 if value >= 0 else -1)
    return _COMPARISONS[test.comparison](value, test.value)


def _alike(value: object, other: object) -> bool:
    """Return whether two values can be compared: both numbers, or both texts."""
    return _kind(value) is not None and _kind(value) == _kind(other)


def _kind(value: object) -> str | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else None
