"""The clock of the replay: which flight goes out when.

The year is cut into cycles of whole days. The days of a cycle are laid over each other: a cycle is
one accelerated day in which every flight goes out at its own time of day. So each cycle has a night
with almost no flights, a steep morning and a full day, made of all the flights of its days.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from examples.flights.dataset import MINUTES_A_DAY

CHANNELS_AT_PEAK = 2.0
"""Channels whose calls of the service keep them busy at the busiest time of day, at
TARGET_UTILIZATION each:
the rest of a batch takes time too, and some keys have more flights."""
TARGET_UTILIZATION = 0.8
PEAK_MINUTES = 60
"""Width of the window in which the busiest time of day is looked for."""

Seconds = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Clock:
    """`days` of flights in `cycles` accelerated days of `cycle_seconds` each."""

    days: int
    cycles: int
    cycle_seconds: float

    @property
    def duration_seconds(self) -> float:
        """How long the replay takes."""
        return self.cycles * self.cycle_seconds

    def due_seconds(self, day: npt.NDArray[np.int64], minute: npt.NDArray[np.int64]) -> Seconds:
        """Return when flights of a day of the year and minute of the day go out."""
        cycle = day * self.cycles // self.days
        due: Seconds = (cycle + minute / MINUTES_A_DAY) * self.cycle_seconds
        return due

    def time_of_day(self, seconds: float) -> str:
        """Return the time of day at a moment of the replay, as HH:MM."""
        minute = round(seconds / self.cycle_seconds * MINUTES_A_DAY) % MINUTES_A_DAY
        return f"{minute // 60:02}:{minute % 60:02}"

    def cycle(self, seconds: float) -> int:
        """Return the cycle (1 is the first) at a moment of the replay."""
        return min(int(seconds / self.cycle_seconds) + 1, self.cycles)


def schedule(flights: pd.DataFrame, clock: Clock) -> tuple[pd.DataFrame, Seconds]:
    """Return the flights in the order in which they go out, and the second when each does."""
    due = clock.due_seconds(flights["day"].to_numpy(), flights["minute"].to_numpy())
    order = np.argsort(due, kind="stable")
    return flights.iloc[order], due[order]


def peak_rate(due: Seconds, clock: Clock) -> float:
    """Return the flights per second in the busiest window of the replay."""
    window = clock.cycle_seconds * PEAK_MINUTES / MINUTES_A_DAY
    in_window = np.searchsorted(due, due + window) - np.arange(len(due))
    return float(in_window.max() / window)


def service_rate(peak: float) -> float:
    """Return the flights per second per connection for which the peak needs CHANNELS_AT_PEAK."""
    return peak / (CHANNELS_AT_PEAK * TARGET_UTILIZATION)
