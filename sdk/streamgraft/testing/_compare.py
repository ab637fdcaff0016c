"""Which values differ: in any order, and with room for what floating-point sums lose."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pyspark.sql import Row

_TOLERANCE = 1e-12
"""By which fractions may differ, in proportion: sums in another order differ less."""
_EXACT = 2.0**53
"""Below, whole numbers have no rounding errors: milliseconds since 1970 are counted, not summed."""


def difference(found: Iterable[Any], wanted: Iterable[Any]) -> list[str]:
    """Return a line for each value that the other side lacks: `- ` if it was wanted, `+ ` if found.

    Equal values are paired first, then those that differ by rounding errors alone. NaN equals NaN.
    """
    surplus, missing = _unpaired(found, wanted)
    lines = [
        *(f"- {_text(value)}" for value in missing),
        *(f"+ {_text(value)}" for value in surplus),
    ]
    return sorted(lines, key=lambda line: (line[2:], line))


def _unpaired(found: Iterable[Any], wanted: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    """Return what is left of both sides."""
    surplus, missing = _paired(found, wanted, _text, lambda *_: True)
    return _paired(surplus, missing, _text_without_floats, _close)


def _paired(
    found: Iterable[Any],
    wanted: Iterable[Any],
    key: Callable[[Any], str],
    same: Callable[[Any, Any], bool],
) -> tuple[list[Any], list[Any]]:
    """Return what is left when values of one key that are the same are paired."""
    left: dict[str, list[Any]] = defaultdict(list)
    for value in wanted:
        left[key(value)].append(value)
    surplus = []
    for value in found:
        candidates = left[key(value)]
        match = next((at for at, other in enumerate(candidates) if same(value, other)), None)
        if match is None:
            surplus.append(value)
        else:
            del candidates[match]
    return surplus, [value for values in left.values() for value in values]


def _close(found: Any, wanted: Any) -> bool:
    """Return whether values whose texts without floats are the same are close to each other."""
    if isinstance(found, float):
        return _close_numbers(found, wanted)
    if isinstance(found, Row):
        return _close(found.asDict(), wanted.asDict())
    if isinstance(found, Mapping):
        return _unpaired(found.items(), wanted.items()) == ([], [])
    if isinstance(found, list | tuple):
        return all(map(_close, found, wanted))
    return True


def _close_numbers(found: float, wanted: float) -> bool:
    if math.isnan(found) or math.isnan(wanted):
        return math.isnan(found) and math.isnan(wanted)
    if found.is_integer() and wanted.is_integer() and abs(found) < _EXACT:
        return found == wanted
    return math.isclose(found, wanted, rel_tol=_TOLERANCE)


def _text_without_floats(value: Any) -> str:
    return _text(value, lambda _: "·")


def _text(value: Any, of_float: Callable[[float], str] | None = None) -> str:
    """Return a value as text that is the same for equal values."""
    if isinstance(value, Row):
        return _text(value.asDict(), of_float)
    if isinstance(value, Mapping):
        items = sorted((_text(key, of_float), _text(item, of_float)) for key, item in value.items())
        return "{" + ", ".join(f"{key}: {item}" for key, item in items) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_text(item, of_float) for item in value) + "]"
    if isinstance(value, float):
        return (of_float or _float_text)(value)
    return repr(value)


def _float_text(value: float) -> str:
    """Return a number's digits: as an integer if it is one, and zero without a sign."""
    return repr(value + 0.0).removesuffix(".0")
