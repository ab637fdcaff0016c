"""When a width change pays for itself.

A change has a price: a pause, warm pods, and the operator's attention. It is counted in
channel-hours, and a narrower width is chosen only where it saves as much.

- Looking back (ski rental): whoever could have done with fewer channels for so long that the price
  was wasted, shrinks. In the worst case that costs twice what someone who knew the future pays.
  Whoever has to grow while the load does, orders in advance (Harris' economic order quantity,
  1913): a change costs a price, and channels that come too early cost hours. With a growth of g
  channels per hour both together are least if each change brings sqrt(2 x price x g) channels; more
  than the largest need of the last day is not ordered.
- Looking ahead: with a forecast of the day the cheapest course of widths through it is known
  exactly, by dynamic programming over its quarters of an hour.
"""

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from streamgraft_autoscaler.trend import Trend

MEMORY_SECONDS = 86_400.0
"""A day: its largest need tells what size of region this is."""
GAP_SECONDS = 300.0
"""Who has seen nothing for longer does not know what was needed meanwhile."""


@dataclass(frozen=True, slots=True)
class Past:
    """What was needed before now."""

    known_seconds: float = 0.0
    """For how long it is known."""
    peaks: tuple[tuple[float, int], ...] = ()
    """Age in seconds and width, oldest first: each the largest width that was needed since."""
    growth: float = 0.0
    """Recent growth of the input rate, as a share of it per hour."""

    def most_within(self, seconds: float) -> int | None:
        """Return the largest width needed in the last `seconds`, None if that is not known."""
        if self.known_seconds < seconds:
            return None
        return max((width for age, width in self.peaks if age <= seconds), default=0)

    @property
    def peak(self) -> int:
        """Return the largest width needed in the last day, as far as it is known."""
        return self.peaks[0][1] if self.peaks else 0


UNKNOWN = Past()
"""The past of a region that was never seen before."""


class Needs:
    """Remembers the widths that a region needed over the last day, and how its load grows."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._peaks: deque[tuple[float, int]] = deque()
        self._trend = Trend()

    def observe(self, now: float, width: int, rate: float) -> None:
        """Take in the width needed at a Unix time, and the input rate (records/s); times grow."""
        self._trend.observe(now, rate)
        if now - self._seen_until() > GAP_SECONDS:
            self._since = now
        while self._peaks and self._peaks[-1][1] <= width:
            self._peaks.pop()
        self._peaks.append((now, width))
        while now - self._peaks[0][0] > MEMORY_SECONDS:
            self._peaks.popleft()

    def known(self) -> tuple[float, Mapping[int, float]] | None:
        """Return since when it remembers, and when each width that counts was needed last (Unix
        times); None if nothing was seen."""
        if self._since is None:
            return None
        return self._since, {width: time for time, width in self._peaks}

    def adopt(self, since: float, needed: Mapping[int, float]) -> None:
        """Take over what another one remembers, in the form of `known`. It counts as known until
        now without a gap only if this one began before the other ended, or right behind that."""
        own_since, own = self.known() or (since, {})
        seamless = own_since - max(needed.values(), default=since) <= GAP_SECONDS
        self._since = min(since, own_since) if seamless else own_since
        latest = {
            width: max(own.get(width, 0.0), needed.get(width, 0.0)) for width in {**own, **needed}
        }
        self._peaks.clear()
        for width, time in sorted(latest.items(), key=lambda item: (item[1], item[0])):
            while self._peaks and self._peaks[-1][1] <= width:
                self._peaks.pop()
            self._peaks.append((time, width))

    def _seen_until(self) -> float:
        return self._peaks[-1][0] if self._peaks else -math.inf

    def past(self, now: float) -> Past:
        """Return what is remembered at a Unix time."""
        if self._since is None:
            return UNKNOWN
        peaks = tuple((now - time, width) for time, width in self._peaks)
        return Past(now - self._since, peaks, self._trend.growth())


@dataclass(frozen=True, slots=True)
class Choice:
    """The width to have."""

    width: int
    """Channels."""
    reason: str = ""
    """Why it is not what the load alone asks for; empty if it is."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What a width is chosen from."""

    present: int
    """The width as it is."""
    crowded: bool
    """Whether its fullest channel can't take more."""
    least: int
    """The narrowest width that is enough now."""
    needed: int
    """The width to grow to."""
    widths: tuple[int, ...]
    """All widths to choose from, ascending; `least` and `needed` are among them."""
    price: float
    """Price of a width change, channel-hours."""
    past: Past = UNKNOWN
    """What was needed before."""
    ahead: tuple[int, ...] = ()
    """The least width of each `step_hours` of the day to come; empty without a forecast."""
    step_hours: float = 0.25
    """Length of a step of `ahead`."""
    steady_seconds: float = math.inf
    """For how long the width has been what it is."""
    full_share: float = 1.0
    """Share of the channels needed, headroom included, that is enough if they are full."""


def choose(situation: Situation) -> Choice:
    """Return the width to have now."""
    return _by_forecast(situation) if situation.ahead else _by_past(situation)


def wait_seconds(present: int, narrower: int, price: float) -> float:
    """Return after what time fewer channels would have saved the price of a change."""
    return 3600.0 * price / (present - narrower)


def _by_past(situation: Situation) -> Choice:
    present, needed = situation.present, situation.needed
    if situation.crowded:
        return _grown(situation)
    reason = ""
    for width in situation.widths:
        if not needed <= width < present:
            continue
        wait = wait_seconds(present, width, situation.price)
        most = situation.past.most_within(wait) if situation.steady_seconds >= wait else None
        if most is not None and max(most, needed) <= width:
            return Choice(width, reason)
        reason = reason or (
            f"{width} would do now, but it saves what a width change is worth only if that lasts"
            f" {wait / 60:.0f} min"
        )
    return Choice(present, reason)


def _grown(situation: Situation) -> Choice:
    """Return what to grow to: to what is needed, or in advance while the load grows."""
    needed, past = situation.needed, situation.past
    advance = math.sqrt(2 * situation.price * needed * past.growth)
    largest = math.ceil(past.peak * situation.full_share)
    wanted = min(situation.least + advance, largest)
    if wanted <= needed:
        return Choice(needed)
    width = next((each for each in situation.widths if each >= wanted), situation.widths[-1])
    if width == needed:
        return Choice(needed)
    reason = (
        f"{needed} would do now, but the load grows by {past.growth:.0%} an hour: so a width change"
        f" soon to follow is spared, and the last day has needed {past.peak}"
    )
    return Choice(width, reason)


def _by_forecast(situation: Situation) -> Choice:
    present, price = situation.present, situation.price
    widths = tuple(sorted({*situation.widths, present}))
    courses = cheapest(situation.ahead, widths, price, situation.step_hours)
    costs = dict(zip(widths, courses, strict=True))
    enough = [width for width in situation.widths if width >= situation.least]
    if not situation.crowded:
        enough.append(present)

    def cost(width: int) -> float:
        return costs[width] + (price if width != present else 0.0)

    best = min(enough, key=lambda width: (cost(width), width))
    least = min(enough)
    if best == present > least:
        saved = costs[present] - cost(least)
        return Choice(present, _kept_for_the_day(least, saved))
    return Choice(best)


def _kept_for_the_day(width: int, saved: float) -> str:
    return (
        f"{width} would do now, but the day to come as it is forecast costs {-saved:.1f}"
        " channel-hours more from there, the width change included"
    )


@lru_cache(maxsize=8192)
def cheapest(
    ahead: Sequence[int], widths: Sequence[int], price: float, step_hours: float
) -> tuple[float, ...]:
    """Return what the cheapest course through the steps `ahead` costs, by the width at its begin.

    In channel-hours, changes included. A width that is too narrow for a step is left at once.
    """
    costs = [0.0] * len(widths)
    for needed in reversed(ahead):
        first = min(bisect_left(widths, needed), len(widths) - 1)
        stay = [cost + width * step_hours for cost, width in zip(costs, widths, strict=True)]
        left = min(stay[first:]) + price
        costs = [min(cost, left) if index >= first else left for index, cost in enumerate(stay)]
    return tuple(costs)
