"""What one channel can process, learned from the windows that show it.

The true rate of a channel (Kalavri et al., OSDI 2018) is records per busy second. Three things
distort it in a single window, and all of them towards a rate that is too small, so a width that is
too large:

- A cold PE compiles its code while it works: its windows are not learned from.
- Every batch has a fixed cost, which weighs most when batches are small: a rate seen at high load
  counts, as long as there is one; it is the load that the rate is wanted for.
- Offsets and busy time move when a batch ends, not while it runs: rates are ratios of sums over
  several windows.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

WARM_UP_BUSY_SECONDS = 10.0
"""Busy time after which a PE counts as warm: a dozen batches or more; its code is compiled then."""
WARM_SHARE = 0.9
"""Share of a window's busy time that must come from warm PEs."""
TRICKLE = 0.0
"""The lowest load band. Batches of a few records show far too small a rate: it is good enough to
tell that fewer channels would do, and never a reason for more."""
BANDS = (TRICKLE, 0.05, 0.25, 0.5)
"""Lower limits of the load bands, as busy share of the width."""
MEMORY_WINDOWS = 3.0
"""After so many windows in its band, what was seen before counts half."""
LEAST_RATE = 0.5
"""A channel is never expected to lose more than half of its rate to other widths."""
HALF_LIFE_SECONDS = 3600.0
"""What another width has shown counts half after so long: what a record costs may be another."""
INEFFECTIVE_SHARE = 0.1
"""Growing is ineffective if it brings less than this share of what it should."""
RETRY_SECONDS = 600.0
"""For so long nothing wider is tried after a growth that was ineffective, and twice as long after
each further one: it may have seemed so because records became dearer meanwhile."""
RETRY_GROWTH = 1.5
"""The width of such a try, by the one before: more than an HPA's tolerance, and enough to show."""
EXPIRY_SECONDS = 86_400.0
"""A band that was not seen for a day says nothing any more; a diurnal load shows all bands."""


@dataclass(frozen=True, slots=True)
class Window:
    """One window of one stage: its end (Unix time) and length in seconds, records/s processed, busy
    time of all channels and of those that were warm when it began (channels), and the width."""

    ended_at: float
    seconds: float
    processing_rate: float
    busy_channels: float
    warm_channels: float
    width: int

    @property
    def busy_share(self) -> float:
        """Return the mean busy share of the channels."""
        return self.busy_channels / self.width if self.width else 0.0


@dataclass(frozen=True, slots=True)
class Capacity:
    """What the channels of a stage can process."""

    true_rate: float
    """Records/s of one channel that is busy all the time, at `width` channels."""
    width: int
    """Channels."""
    busy_share: float
    """Lower limit of the load band that showed it, 0 to 1."""
    seen_at: float
    """When it was seen, Unix time."""
    by_width: Mapping[int, float]
    """True rates, records/s, at all widths seen in that band."""
    loss_per_channel: float
    """Share of the rate that each further channel is expected to cost all of them."""
    gain_per_channel: float
    """Share of the rate that each channel less is expected to give all others: the loss, of which
    widths seen long before show less. What was long ago is no reason to be narrower."""
    since_then: Mapping[int, float] = field(default_factory=dict)
    """True rates, records/s, that lower loads have shown since then, by width."""
    last_seen: Mapping[int, float] = field(default_factory=dict)
    """When each width in `by_width` was last seen, Unix time; now where it is missing."""

    def rate_at(self, width: int) -> float:
        """Return the true rate to be expected at another width, at least LEAST_RATE of this one.

        A width that was not seen at such a load does what that width, or a wider one, has done at
        lower loads since: a lower load shows too small a rate, and further channels add none.
        Otherwise a loss that the first minutes showed would keep a region wide for a day, in which
        it is never loaded enough to show the contrary.
        """
        per_channel = self.loss_per_channel if width > self.width else self.gain_per_channel
        change = 1.0 - per_channel * (width - self.width)
        expected = self.true_rate * max(change, LEAST_RATE)
        if width in self.by_width:
            weight = fading(self.seen_at - self.last_seen.get(width, self.seen_at))
            return expected + weight * (self.by_width[width] - expected)
        return max([expected, *(rate for at, rate in self.since_then.items() if at >= width)])

    def limit(self) -> "GrowthLimit | None":
        """Return the limit that holds since growing to this width brought next to nothing, because
        something else than the channels is the bottleneck; None if growing helped."""
        widths = sorted(width for width in self.by_width if width <= self.width)
        failures = 0
        while len(widths) > 1 and self._in_vain(*widths[-2:]):
            widths.pop()
            failures += 1
        if not failures:
            return None
        before = max(width for width in self.by_width if width < self.width)
        held_for = self.seen_at - self.last_seen.get(before, self.seen_at)
        retry_in = RETRY_SECONDS * 2 ** (failures - 1) - held_for
        width = math.ceil(RETRY_GROWTH * self.width) if retry_in <= 0 else before
        return GrowthLimit(width, max(retry_in, 0.0))

    def _in_vain(self, narrower: int, wider: int) -> bool:
        expected = wider / narrower - 1.0
        actual = wider * self.by_width[wider] / (narrower * self.by_width[narrower]) - 1.0
        return actual < INEFFECTIVE_SHARE * expected


@dataclass(frozen=True, slots=True)
class GrowthLimit:
    """How far a stage may grow whose last growth brought next to nothing."""

    width: int
    """Channels that are enough, or that are tried next."""
    retry_in: float
    """Seconds until something wider is tried; 0 if that is due."""


def fading(seconds: float) -> float:
    """Return what still counts, 1 to 0, of what was seen so many seconds before."""
    return math.pow(0.5, max(seconds, 0.0) / HALF_LIFE_SECONDS)


def loss_per_channel(
    width: int, by_width: Mapping[int, float], last_seen: Mapping[int, float] | None = None
) -> float:
    """Return the share of the true rate at `width` that each further channel costs all of them, 0
    or more: least squares over the widths seen. Channels share disks, brokers and services.

    With `last_seen` those seen long before `width` show less of a loss.
    """
    others = {other: rate for other, rate in by_width.items() if other != width}
    steps = sum((other - width) ** 2 for other in others)
    if not steps:
        return 0.0
    lost = (
        (fading(last_seen[width] - last_seen[other]) if last_seen else 1.0)
        * (width - other)
        * (rate / by_width[width] - 1.0)
        for other, rate in others.items()
    )
    return max(0.0, sum(lost) / steps)


@dataclass(frozen=True, slots=True)
class CapacitySample:
    """What a learner keeps of one load band at one width, so that another learner can go on from
    there."""

    band: float
    """One of BANDS."""
    width: int
    """Channels."""
    records: float
    """Sum in which older windows count less."""
    busy_seconds: float
    """Sum in which older windows count less."""
    seen_at: float
    """End of the last window, Unix time."""

    def __post_init__(self) -> None:
        """Raise ValueError unless it says something that a window can show."""
        rate = self.records / self.busy_seconds if self.busy_seconds > 0 else 0.0
        if not (self.band in BANDS and self.width >= 1 and 0 < rate < math.inf):
            raise ValueError(f"no window shows this: {self}")


@dataclass(slots=True)
class _Seen:
    records: float = 0.0
    busy_seconds: float = 0.0
    seen_at: float = 0.0

    @property
    def rate(self) -> float:
        return self.records / self.busy_seconds

    def add(self, window: Window) -> None:
        # Windows overlap: each brings what is new in it.
        fresh = min(window.ended_at - self.seen_at, window.seconds)
        kept = 0.5 ** (fresh / (MEMORY_WINDOWS * window.seconds))
        self.records = self.records * kept + window.processing_rate * fresh
        self.busy_seconds = self.busy_seconds * kept + window.busy_channels * fresh
        self.seen_at = window.ended_at


class CapacityLearner:
    """Learns the capacity of one stage from its windows, oldest first."""

    def __init__(self) -> None:
        self._bands: dict[float, dict[int, _Seen]] = {limit: {} for limit in BANDS}

    def observe(self, window: Window) -> None:
        """Learn from a window, unless it is idle, cold or already known."""
        warm = window.warm_channels >= WARM_SHARE * window.busy_channels
        if not warm or window.processing_rate <= 0 or window.busy_share <= 0:
            return
        band = max(limit for limit in BANDS if window.busy_share >= limit)
        seen = self._bands[band].setdefault(window.width, _Seen())
        if window.ended_at > seen.seen_at:
            seen.add(window)

    def samples(self, now: float) -> Iterator[CapacitySample]:
        """Yield all that counts at the Unix time `now`."""
        for band, widths in self._bands.items():
            for width, seen in widths.items():
                if now - seen.seen_at <= EXPIRY_SECONDS:
                    yield CapacitySample(band, width, seen.records, seen.busy_seconds, seen.seen_at)

    def adopt(self, sample: CapacitySample) -> None:
        """Take over what another learner knows, unless this one saw the same or more."""
        widths = self._bands.get(sample.band, {})
        known = widths.get(sample.width, _Seen())
        offered = _Seen(sample.records, sample.busy_seconds, sample.seen_at)
        if (offered.seen_at, offered.busy_seconds) > (known.seen_at, known.busy_seconds):
            widths[sample.width] = offered

    def capacity(self, now: float) -> Capacity | None:
        """Return what is known at the Unix time `now`: the rates at the highest load seen."""
        for limit in reversed(BANDS):
            fresh = {
                width: seen
                for width, seen in self._bands[limit].items()
                if now - seen.seen_at <= EXPIRY_SECONDS
            }
            if fresh:
                width = max(fresh, key=lambda width: fresh[width].seen_at)
                rates = {width: seen.rate for width, seen in fresh.items()}
                last_seen = {width: seen.seen_at for width, seen in fresh.items()}
                loss = loss_per_channel(width, rates)
                gain = loss_per_channel(width, rates, last_seen)
                seen_at = fresh[width].seen_at
                since_then = self._since(seen_at, limit)
                return Capacity(
                    rates[width], width, limit, seen_at, rates, loss, gain, since_then, last_seen
                )
        return None

    def _since(self, then: float, band: float) -> dict[int, float]:
        """Return the largest rate that bands below this one have shown since then, by width."""
        found: dict[int, float] = {}
        for limit, widths in self._bands.items():
            for width, seen in widths.items():
                if limit < band and seen.seen_at > then:
                    found[width] = max(seen.rate, found.get(width, 0.0))
        return found
