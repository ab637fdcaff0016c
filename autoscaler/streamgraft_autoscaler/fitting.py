"""The narrowest width whose fullest channel can do its work.

Work comes in shards: with 16 shards, 5 channels are no better than 4, since one of them still holds
4 shards; and what one shard gets can't be divided at all.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

TOLERANCE = 0.1
"""As the HPA's: a width is kept while its fullest channel is within so much of the target, and left
for a narrower one only where that is as far below."""


@cache
def _divisions(shards: int) -> tuple[int, ...]:
    """Return the widths whose fullest channel has fewer shards than at all narrower widths."""
    widths = range(1, shards + 1)
    return tuple(w for w in widths if w == 1 or -(-shards // w) < -(-shards // (w - 1)))


@dataclass(frozen=True, slots=True)
class Shards:
    """`count`: shards of the region; `largest`: share of the work that the fullest one gets."""

    count: int
    largest: float

    def fullest_channel(self, width: int) -> float:
        """Return the share of the work of the fullest of `width` channels."""
        return max(math.ceil(self.count / width) / self.count, self.largest)

    def useful_widths(self, limit: int) -> list[int]:
        """Return the widths up to `limit` that are better than all narrower ones."""
        useful: list[int] = []
        for width in _divisions(self.count):
            better = not useful or self.fullest_channel(width) < self.fullest_channel(useful[-1])
            if width <= limit and better:
                useful.append(width)
        return useful


@dataclass(frozen=True, slots=True)
class Target:
    """`utilization`: wanted busy share of the fullest channel; `headroom`: by what share the load
    may still grow once a width was chosen, so that a rising load does not change it at every turn;
    `limit`: the largest width."""

    utilization: float
    headroom: float
    limit: int


@dataclass(frozen=True, slots=True)
class Fit:
    """`width`: channels; `kept`: it is the present width, though another one would be enough;
    `enough`: it can do the work at the target utilization; `grows_above`, `shrinks_below`: busy
    shares of the present width's fullest channel at which another width would be chosen."""

    width: int
    kept: bool
    enough: bool
    grows_above: float
    shrinks_below: float


def fit(load: Callable[[int], float], shards: Shards, present: int, target: Target) -> Fit:
    """Return the width to have.

    `load`: busy share of the fullest channel at a width (1 is all of its time); `present`: the
    width that serves. It is left for a wider one if its load is above the target, and for a
    narrower one that has the headroom, once the load has gone down by as much again: neither a
    rising nor a falling load changes the width at every turn.
    """
    useful = shards.useful_widths(target.limit)
    roomy = target.utilization / (1 + target.headroom)
    limits = target.utilization * (1 + TOLERANCE), roomy / (1 + target.headroom)
    if present > target.limit or load(present) > limits[0]:
        found = next((width for width in useful if load(width) <= roomy), useful[-1])
        return Fit(found, False, load(found) <= target.utilization, *limits)
    least = next((width for width in useful if load(width) <= target.utilization), present)
    falling = load(present) <= limits[1]
    roomy = min(roomy, target.utilization * (1 - TOLERANCE)) if falling else 0.0
    roomy = max(roomy, load(present))  # a width that is no better than a narrower one is no use
    lower = next((w for w in useful if w < present and load(w) <= roomy), present)
    return Fit(lower, lower != least, True, *limits)
