"""The narrowest width whose fullest channel can do its work.

Work comes in shards: with 16 shards, 5 channels are no better than 4, since one of them still holds
4 shards; and what one shard gets can't be divided at all. Channels get the same number of shards,
give or take one, whatever these do: a hot one has as many beside it as any other. Hot ones are
spread over channels, as far as anybody knows which are, so those are quiet ones, until there are
more hot ones than channels.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache

from streamgraft_autoscaler.capacity import INEFFECTIVE_SHARE

ROUNDING = 1e-9
"""Shares that differ by less are the same."""


@cache
def _divisions(shards: int) -> tuple[int, ...]:
    """Return the widths whose fullest channel has fewer shards than at all narrower widths."""
    widths = range(1, shards + 1)
    return tuple(w for w in widths if w == 1 or -(-shards // w) < -(-shards // (w - 1)))


@dataclass(frozen=True, slots=True)
class Shards:
    """How the work is divided."""

    count: int
    """Shards of the region."""
    largest: float
    """Share of the work that the fullest one gets, 0 to 1; less than an even share: that."""
    median: float = 1.0
    """Share of the work that half of them get at most, 0 to 1; more than an even share of what the
    fullest one leaves: that."""

    def shares(self) -> list[float]:
        """Return the share of each, the fullest first: as many as there must be get what that one
        does, one gets what is left, and all others the median."""
        largest, hot, left, usual = self._kinds()
        return ([largest] * hot + [left] + [usual] * self.count)[: self.count]

    def fullest_channel(self, width: int) -> float:
        """Return the share of the work that the fullest of `width` channels is expected to get: its
        part of the hot shards, and as many others as a channel has beside them at most."""
        largest, hot, left, usual = self._kinds()
        own = math.ceil(hot / width)
        beside = math.ceil(self.count / width) - own
        others = beside * usual
        if beside and hot % width == 0:  # all have as many hot ones, and one has what is left
            others += left - usual
        return max(own * largest + others, 1 / width)

    def _kinds(self) -> tuple[float, int, float, float]:
        """Return what a hot shard gets, how many there are, and what one other and the rest get."""
        largest = max(self.largest, 1 / self.count)
        usual = min(self.median, (1 - largest) / max(self.count - 1, 1))
        missing, more = 1 - usual * self.count, largest - usual
        hot = math.floor(missing / more + ROUNDING) if more > ROUNDING else self.count
        return largest, hot, usual + missing - hot * more, usual

    def useful_widths(self, limit: int) -> tuple[int, ...]:
        """Return the widths up to `limit` that are better than all narrower ones.

        Beside a hot shard there is little to take away: a width that brings next to nothing of
        what its channels should is left out.
        """
        return _useful_widths(self, limit)

    def helps(self, narrower: int, wider: int) -> bool:
        """Return whether a wider width takes something off the fullest channel."""
        actual = self.fullest_channel(narrower) / self.fullest_channel(wider) - 1
        return actual >= INEFFECTIVE_SHARE * (wider / narrower - 1)


@lru_cache(maxsize=4096)
def _useful_widths(shards: Shards, limit: int) -> tuple[int, ...]:
    useful: list[int] = []
    for width in _divisions(shards.count):
        if width <= limit and (not useful or shards.helps(useful[-1], width)):
            useful.append(width)
    return tuple(useful)


@dataclass(frozen=True, slots=True)
class Target:
    """How full channels should be."""

    utilization: float
    """Wanted busy share of the fullest channel, 0 to 1."""
    headroom: float
    """Share by which the load may still grow to it once a width was chosen."""
    limit: int
    """The largest width."""

    @property
    def roomy(self) -> float:
        """Return the busy share that a width is chosen for."""
        return self.utilization / (1 + self.headroom)

    @property
    def full(self) -> float:
        """Return the busy share from which a channel is crowded: of the idle time that the target
        leaves it, three quarters are gone (95 % at a target of 80 %)."""
        return 1 - (1 - self.utilization) / 4

    def planned(self, error: float) -> float:
        """Return the busy share that a width is planned for by who knows the load up to an `error`
        (mean, as a share of the rate), and never less than `roomy`: with room for what comes beyond
        the forecast on average. That is half of the error; the other half is what fails to come."""
        return max(self.full / (1 + error / 2), self.roomy)


@dataclass(frozen=True, slots=True)
class Fit:
    """The widths that can do some work."""

    needed: int
    """The narrowest width with the headroom, or the largest useful one."""
    least: int
    """The narrowest that has room for the error of the forecast, or the largest useful one."""
    enough: bool
    """Whether that one is not crowded."""


def fit(load: Callable[[int], float], shards: Shards, target: Target, error: float = 0.0) -> Fit:
    """Return the widths for a `load`: busy share of the fullest channel at a width (1: all of its
    time); `error`: of the forecast, as a share of the rate."""
    useful = shards.useful_widths(target.limit)

    def narrowest(share: float) -> int:
        return next((width for width in useful if load(width) <= share), useful[-1])

    least = narrowest(target.planned(error))
    return Fit(narrowest(target.roomy), least, load(least) <= target.full)
