"""Load traces: how many records arrive, over time."""

import csv
import io
import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

COLUMNS = ("seconds", "records_per_second")
MOST_STEPS = 5_000_000
"""More than two years, a step for each quarter of a minute."""


class TraceError(ValueError):
    """What was given is no load trace; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A load over time."""

    name: str
    step_seconds: float
    """Length of a step."""
    rates: tuple[float, ...]
    """`rates[i]`: records/s from i x `step_seconds` on, until the next one."""

    @property
    def duration_seconds(self) -> float:
        """Return how long it lasts."""
        return len(self.rates) * self.step_seconds

    def at(self, seconds: float) -> float:
        """Return the records/s at a moment of the trace."""
        return self.rates[min(int(seconds / self.step_seconds), len(self.rates) - 1)]

    def scaled(self, peak: float) -> "Trace":
        """Return the same trace with another peak, records/s."""
        largest = max(self.rates)
        return Trace(
            self.name, self.step_seconds, tuple(rate * peak / largest for rate in self.rates)
        )


def read_csv(name: str, text: str) -> Trace:
    """Return the trace of a CSV with the columns COLUMNS; times may be uneven, a rate holds until
    the next one. Raises TraceError."""
    rows = csv.DictReader(io.StringIO(text))
    if not set(COLUMNS) <= set(rows.fieldnames or ()):
        raise TraceError(f"{name} needs the columns {' and '.join(COLUMNS)} in its first line")
    points: list[tuple[float, float]] = []
    for number, row in enumerate(rows, 2):
        try:
            point = float(row[COLUMNS[0]]), float(row[COLUMNS[1]])
        except (TypeError, ValueError):
            raise TraceError(f"{name}, line {number}: two numbers are needed") from None
        points.append(point)
    return from_points(name, points)


def read_prometheus(name: str, document: Mapping[str, Any]) -> Trace:
    """Return the trace of Prometheus' answer to a range query (one series). Raises TraceError."""
    try:
        found = document["data"]["result"]
        (series,) = found or [{"values": []}]
        values = [(float(time), float(value)) for time, value in series["values"]]
    except (KeyError, TypeError, ValueError) as error:
        raise TraceError(f"{name} is no range of one series: {error!r}") from error
    if len(values) < 2:
        raise TraceError(
            f"{name} has {len(values)} points in time of it, a replay needs two: look whether the"
            " query is right, ask for more hours, or wait a minute if the job has just started"
        )
    start = values[0][0]
    return from_points(name, [(time - start, value) for time, value in values])


def from_points(name: str, points: list[tuple[float, float]]) -> Trace:
    """Return the trace of (seconds, records/s), whose times grow. Raises TraceError."""
    gaps = [after[0] - before[0] for before, after in pairwise(points)]
    if not gaps or not all(0 < gap < math.inf for gap in gaps):
        raise TraceError(f"{name} needs two points in time or more, each later than the one before")
    if not all(math.isfinite(rate) and rate >= 0 for _, rate in points):
        raise TraceError(f"{name} has a rate that is negative or no number")
    step, rates = min(gaps), list[float]()
    start, end = points[0][0], points[-1][0]
    if (end - start) / step > MOST_STEPS:
        raise TraceError(
            f"{name} has points in time that are {step:g} s apart, and lasts {end - start:g} s,"
            f" which makes more than {MOST_STEPS:,} steps: leave out points that are so close"
        )
    for (_, rate), (until, _) in pairwise(points):
        rates += [rate] * (round((until - start) / step) - len(rates))
    return Trace(name, step, (*rates, points[-1][1]))
