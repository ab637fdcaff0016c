"""Kubernetes quantities ("500m", "1.5Gi", "1e3") as exact numbers."""

import re
from decimal import ROUND_CEILING, Decimal

_SUFFIXES = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    **{unit: Decimal(1000) ** power for power, unit in enumerate("kMGTPE", start=1)},
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", start=1)},
}
_PATTERN = re.compile(r"^([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([numkKMGTPE]?i?)$")


def parse(text: str) -> Decimal:
    """Return the number that a quantity stands for. Raises ValueError."""
    match = _PATTERN.match(text)
    if not match or match[2] not in _SUFFIXES:
        raise ValueError(f"not a quantity: {text!r}")
    return Decimal(match[1]) * _SUFFIXES[match[2]]


def in_units(quantity: str, divisor: str) -> str:
    """Return the quantity in units of the divisor, rounded up, as resourceFieldRef shows it."""
    unit = parse(divisor) or Decimal(1)
    return str((parse(quantity) / unit).to_integral_value(ROUND_CEILING))
