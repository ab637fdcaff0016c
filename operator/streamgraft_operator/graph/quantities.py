"""Kubernetes quantities: parsed, and divided among PEs."""

import math
from fractions import Fraction

from streamgraft_common.resources.base import Resources

_SUFFIXES = {
    **{letter: Fraction(1, 1000**power) for power, letter in enumerate("mun", start=1)},
    "k": Fraction(10**3),
    **{letter: Fraction(10 ** (3 * power)) for power, letter in enumerate("KMGTPE", start=1)},
    **{f"{letter}i": Fraction(1024**power) for power, letter in enumerate("KMGTPE", start=1)},
}
_DIVISIBLE = ("memory", "ephemeral-storage")


def parse(quantity: str) -> Fraction:
    """Return the value of a quantity, as `250m`, `1.5`, `2Gi`, `1e9` or `300000n`."""
    digits = quantity.rstrip("nuimkKMGTPE")
    return Fraction(digits) * _SUFFIXES.get(quantity[len(digits) :], Fraction(1))


def divided(resources: Resources, count: int) -> Resources:
    """Return the share of each of `count` PEs.

    CPU in whole millicores and memory in whole bytes, rounded down. Anything else comes in whole
    pieces (devices), rounded up: a PE without its device would not do.
    """
    return Resources(
        requests={name: _share(name, text, count) for name, text in resources.requests.items()},
        limits={name: _share(name, text, count) for name, text in resources.limits.items()},
    )


def _share(name: str, quantity: str, count: int) -> str:
    share = parse(quantity) / count
    if name == "cpu":
        return f"{max(1, math.floor(share * 1000))}m"
    if name in _DIVISIBLE:
        return str(max(1, math.floor(share)))
    return str(math.ceil(share))
