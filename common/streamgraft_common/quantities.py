"""Kubernetes quantities ("250m", "1.5Gi", "1e3") as exact numbers. Pure."""

import math
import re
from fractions import Fraction

_SUFFIXES = {
    **{letter: Fraction(1, 1000**power) for power, letter in enumerate("mun", start=1)},
    "": Fraction(1),
    "k": Fraction(10**3),
    **{letter: Fraction(10 ** (3 * power)) for power, letter in enumerate("KMGTPE", start=1)},
    **{f"{letter}i": Fraction(1024**power) for power, letter in enumerate("KMGTPE", start=1)},
}
_PATTERN = re.compile(
    r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?)([numkKMGTPE]?i?)"
)
LONGEST = 64
"""Characters. A longer one, or a larger exponent, would take its reader minutes: no resource has
so much."""


class NotAQuantity(ValueError):
    """A text is none, or too long to be one."""


def parse(text: str) -> Fraction:
    """Return the value of a quantity, as `250m`, `1.5`, `2Gi`, `1e9` or `300000n`.

    Raises NotAQuantity.
    """
    match = _PATTERN.fullmatch(text) if len(text) <= LONGEST else None
    if not match or match[2] not in _SUFFIXES:
        raise NotAQuantity(f"not a quantity: {text[:LONGEST]!r}")
    return Fraction(match[1]) * _SUFFIXES[match[2]]


def in_units(quantity: str, divisor: str) -> str:
    """Return the quantity in units of the divisor, rounded up, as resourceFieldRef shows it.

    A divisor of 0 stands for 1, as there.
    """
    return str(math.ceil(parse(quantity) / (parse(divisor) or 1)))
