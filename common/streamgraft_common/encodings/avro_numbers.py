"""Values of JSON as the numbers of Avro. Pure.

fastavro writes a number without a look at its type's range, and takes a moment without a time zone
for one of the process's own.
"""

import math
import struct
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

NUMBERS = ("int", "long", "float", "double")
_BITS = {"int": 31, "long": 63}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def number(value: Any, kind: str) -> Any:
    """Return a value for a type of `NUMBERS`. Raises ValueError if that has no place for it."""
    if kind not in _BITS:
        return _floating(value, kind)
    limit = 1 << _BITS[kind]
    if isinstance(value, (int, Decimal)) and not -limit <= value < limit:
        raise ValueError(f"{value} is out of the range of {kind}")
    return value


def moment(text: str, logical: str) -> datetime | int:
    """Return a moment as fastavro takes it for a logical type: nanoseconds as their number."""
    found = datetime.fromisoformat(text)
    if found.tzinfo is None or logical.startswith("local-"):
        found = found.replace(tzinfo=UTC)
    if not logical.endswith("-nanos"):
        return found
    nanos: int = number((found - _EPOCH) // timedelta(microseconds=1) * 1000, "long")
    return nanos


def _floating(value: Any, kind: str) -> float:
    found = float(value)
    if math.isinf(found):
        fits = not Decimal(value).is_finite()
    else:
        fits = kind == "double" or _is_single(found)
    if not fits:
        raise ValueError(f"{value} is out of the range of {kind}")
    return found


def _is_single(value: float) -> bool:
    try:
        struct.pack("<f", value)
    except OverflowError:
        return False
    return True
