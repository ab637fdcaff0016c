"""A seasonal forecast of the input rate: the same time of day on the days before.

A width change takes as long as a channel takes to warm up, and the next one comes soon on a rising
load. Who knows the day can be there in one step. The forecast only ever raises the load, and only
while it has proved right lately: a day like no other is served by what is measured.
"""

from dataclasses import dataclass

import numpy as np
from coreforecast.rolling import seasonal_rolling_mean

BUCKET_SECONDS = 900.0
"""Rates are averaged over a quarter of an hour."""
SEASON_BUCKETS = 96
"""A day."""
SEASONS = 7
"""Days that the expectation is the mean of, at most."""
LARGEST_ERROR = 0.25
"""Mean error over the last day, as a share of the mean rate, up to which it is trusted."""
LEVEL_BUCKETS = 4
"""The last hour tells how much more or less there is today than usual, at most twofold."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """`rate`: largest rate expected within the horizon, records/s; `error`: that of the last day,
    as a share of the mean rate; `trusted`: the error is small enough."""

    rate: float
    error: float
    trusted: bool


class SeasonalForecaster:
    """Learns the day of one region from its input rate."""

    def __init__(self) -> None:
        self._means: list[float] = []
        self._bucket: int | None = None
        self._sum = 0.0
        self._count = 0

    def observe(self, now: float, rate: float) -> None:
        """Take in a rate (records/s) at a Unix time; times grow. A gap begins a new history."""
        bucket = int(now // BUCKET_SECONDS)
        if self._bucket is not None and bucket != self._bucket:
            self._means.append(self._sum / self._count)
            if bucket != self._bucket + 1:
                self._means = []
            self._means = self._means[-(SEASONS + 1) * SEASON_BUCKETS :]
            self._sum, self._count = 0.0, 0
        self._bucket = bucket
        self._sum += rate
        self._count += 1

    def forecast(self, horizon_seconds: float) -> Forecast | None:
        """Return what to expect from now to the horizon; None before two whole days are known."""
        if len(self._means) < 2 * SEASON_BUCKETS:
            return None
        seen = np.asarray(self._means)
        usual = seasonal_rolling_mean(seen, SEASON_BUCKETS, SEASONS, 1)
        # What each bucket of the last day was expected to be, a day before.
        expected, actual = usual[-2 * SEASON_BUCKETS : -SEASON_BUCKETS], seen[-SEASON_BUCKETS:]
        mean = float(actual.mean())
        error = float(np.abs(actual - expected).mean() / mean) if mean > 0 else 0.0
        ahead = min(int(horizon_seconds // BUCKET_SECONDS) + 1, SEASON_BUCKETS)
        coming = usual[-SEASON_BUCKETS : len(usual) - SEASON_BUCKETS + ahead]
        before = float(expected[-LEVEL_BUCKETS:].sum())
        level = float(actual[-LEVEL_BUCKETS:].sum()) / before if before > 0 else 1.0
        rate = float(coming.max()) * min(max(level, 0.5), 2.0)
        return Forecast(rate, error, error <= LARGEST_ERROR)
