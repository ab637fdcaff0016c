"""How fast a load grows just now.

Only what goes on counts: growth that showed in each part of the last half hour. A jump, a spike or
a backlog shows in one of them, and says nothing of what is to come.
"""

from collections import deque
from itertools import pairwise

SAMPLE_SECONDS = 300.0
PARTS = 2
PART_SAMPLES = 3
"""The half hour is looked at in two quarters of an hour, of three samples each."""


class Trend:
    """Watches one input rate."""

    def __init__(self) -> None:
        self._samples: deque[float] = deque(maxlen=PARTS * PART_SAMPLES + 1)
        self._sampled_at = 0.0
        self._rate = 0.0

    def observe(self, now: float, rate: float) -> None:
        """Take in a rate (records/s) at a Unix time; times grow. A gap begins anew."""
        passed = now - self._sampled_at
        if passed >= 2 * SAMPLE_SECONDS:
            self._samples.clear()
        if not self._samples or passed >= SAMPLE_SECONDS:
            self._samples.append(rate)
            self._sampled_at = now
        self._rate = rate

    def growth(self) -> float:
        """Return by what share of the present rate it grows per hour, 0 or more; 0 in the first
        half hour."""
        if len(self._samples) <= PARTS * PART_SAMPLES or self._rate <= 0:
            return 0.0
        rates = list(self._samples)[::PART_SAMPLES]
        grown = min(after - before for before, after in pairwise(rates))
        per_hour = 3600.0 / (PART_SAMPLES * SAMPLE_SECONDS)
        return max(grown, 0.0) * per_hour / self._rate
