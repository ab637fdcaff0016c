"""A seasonal forecast of the input rate: the same time of day on the days before.

Who knows the day knows which width changes pay: whether a dip is over too soon, and to what width a
rising load will lead. The forecast counts only while it has proved right lately: a day like no
other is served by what is measured.
"""

import math
from array import array
from dataclasses import dataclass, replace

import numpy as np
from coreforecast.rolling import seasonal_rolling_mean
from numpy.typing import NDArray

BUCKET_SECONDS = 900.0
"""Rates are averaged over a quarter of an hour."""
DAY_BUCKETS = 96
WEEK_BUCKETS = 7 * DAY_BUCKETS
MEMORY_BUCKETS = 2 * WEEK_BUCKETS + DAY_BUCKETS
MODELS = ((DAY_BUCKETS, 1), (DAY_BUCKETS, 7), (WEEK_BUCKETS, 2))
"""Season, and how many of them the expectation is the mean of at most: yesterday, the last days,
the same day of the last weeks. Whichever was right lately is taken."""
PROVED_BUCKETS = 24
"""The errors of the last six hours tell whether it is right."""
LARGEST_ERROR = 0.25
"""Mean error of that time, as a share of the day's mean rate, up to which it is trusted in any
case. A day that goes up and down by more than that is worth a larger one: as long as it is smaller
than that of the day's mean, which is what who has no forecast knows."""
BRIDGED_BUCKETS = 4
"""An hour without a rate, as after a restart of what measures it, does not end a history."""
LEVEL_BUCKETS = 4
"""The last hour tells how much more or less there is today than usual, the less the quieter it is
(an hour of the day's mean is added to both), and at most twofold."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """The input rate of the day to come."""

    rates: tuple[float, ...]
    """Expected records/s in each quarter of an hour, the present one first."""
    error: float
    """The error of the last six hours, as a share of the day's mean rate."""
    trusted: bool
    """Whether the error is small enough."""


class SeasonalForecaster:
    """Learns the day of one region from its input rate: by `observe`, or by `learn`, not by both.

    Quarters of an hour are numbered from the Unix epoch on.
    """

    def __init__(self) -> None:
        self._means = array("d")
        self._next = 0
        self._bucket: int | None = None
        self._sum = 0.0
        self._count = 0
        self._found: Forecast | None = None
        self._stale = False

    def observe(self, now: float, rate: float) -> None:
        """Take in a rate (records/s) at a Unix time; times grow. Its quarter is learned once it is
        over."""
        bucket = bucket_of(now)
        if self._bucket is not None and bucket != self._bucket:
            self.learn(self._bucket, self._sum / self._count)
            self._sum, self._count = 0.0, 0
        self._bucket = bucket
        self._sum += rate
        self._count += 1

    def learn(self, bucket: int, mean: float) -> None:
        """Take in the mean rate (records/s) of a quarter that is over, by its number.

        A quarter that is known, or older than one, stays as it is. No number, or a negative one, is
        a gap. One of up to an hour is bridged by a straight line, a longer one begins a new
        history.
        """
        if bucket < self._next or not (math.isfinite(mean) and mean >= 0):
            return
        missing = bucket - self._next
        if missing > BRIDGED_BUCKETS or not self._means:
            self._means = array("d")
        else:
            last = self._means[-1]
            step = (mean - last) / (missing + 1)
            self._means.extend(last + step * number for number in range(1, missing + 1))
        self._means.append(mean)
        del self._means[:-MEMORY_BUCKETS]
        self._next = bucket + 1
        self._stale = True

    def forecast(self, now: float) -> Forecast | None:
        """Return what to expect from a Unix time on: of the next 24 hours, less the quarters since
        the last one that is known. None before two whole days are known, or more than an hour after
        the last one."""
        passed = max(bucket_of(now) - self._next, 0)
        if passed > BRIDGED_BUCKETS:
            return None
        if self._stale:
            self._found, self._stale = _forecast(np.asarray(self._means)), False
        if self._found is None or not passed:
            return self._found
        return replace(self._found, rates=self._found.rates[passed:])


def bucket_of(now: float) -> int:
    """Return the number of the quarter of an hour that a Unix time is in."""
    return int(now // BUCKET_SECONDS)


def _forecast(seen: NDArray[np.float64]) -> Forecast | None:
    if len(seen) < 2 * DAY_BUCKETS:
        return None
    today = seen[-DAY_BUCKETS:]
    mean = float(today.mean())
    spread = float(np.abs(today - mean).mean() / mean) if mean > 0 else 0.0
    found: list[Forecast] = []
    for season, seasons in MODELS:
        if len(seen) < 2 * season:
            continue
        usual = seasonal_rolling_mean(seen, season, seasons, 1)
        # What each of the last buckets was expected to be, a season before.
        expected = usual[-PROVED_BUCKETS - season : -season]
        actual = seen[-PROVED_BUCKETS:]
        error = float(np.abs(actual - expected).mean() / mean) if mean > 0 else 0.0
        coming = usual[len(usual) - season :][:DAY_BUCKETS] * _level(actual, expected, mean)
        found.append(
            Forecast(tuple(map(float, coming)), error, error <= max(spread, LARGEST_ERROR))
        )
    return min(found, key=lambda item: item.error)


def _level(actual: NDArray[np.float64], expected: NDArray[np.float64], mean: float) -> float:
    now, usual = (float(rates[-LEVEL_BUCKETS:].sum()) for rates in (actual, expected))
    usual_hour = LEVEL_BUCKETS * mean
    level = (now + usual_hour) / (usual + usual_hour) if usual_hour > 0 else 1.0
    return min(max(level, 0.5), 2.0)
