"""How the keys of one number of key groups lie in another. Pure.

The group of a key is its hash modulo their number (Kafka's default partitioner), so keys of a new
group are found only in the old groups that leave the same rest by the greatest common divisor.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from streamgraft_common.resources.savepoint import SavedState

_JOIN = "symmetricHashJoin"
_JOIN_COLUMN = "field"


@dataclass(frozen=True)
class Split:
    """A key group of a new division of the keys, out of an old one."""

    key: tuple[str, ...]
    """Columns that decide a row's group."""
    old_groups: int
    new_groups: int
    group: int


def origins(old_groups: int, new_groups: int, group: int) -> list[int]:
    """Return the old key groups that keys of a new one may have been in."""
    step = math.gcd(old_groups, new_groups)
    return list(range(group % step, old_groups, step))


def heirs(old_groups: int, new_groups: int) -> dict[int, int]:
    """Return, of each old key group, the first of the new ones that keys of it may be in."""
    step = math.gcd(old_groups, new_groups)
    return {group: group % step for group in range(old_groups)}


def readings(old_groups: int, new_groups: int) -> int:
    """Return how often each old group is read if all new ones are made."""
    return new_groups // math.gcd(old_groups, new_groups)


def key_columns(state: SavedState, key: Sequence[str]) -> list[str] | None:
    """Return the columns of a state's own key that are a region's key; None if it lacks some.

    Spark numbers the columns that a join is on: they are taken to be the key if they are as many.
    """
    if not key:
        return None
    if set(key) <= set(state.key):
        return list(key)
    joined = [name for name in state.key if name.startswith(_JOIN_COLUMN)]
    return joined if state.operator == _JOIN and len(joined) == len(key) else None
