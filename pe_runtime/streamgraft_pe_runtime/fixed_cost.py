"""Which share of a batch's time does not depend on its records: a regression over batches. Pure."""

import math

_KEPT = 0.995
"""Weight of all batches before against the newest: what was seen 140 batches ago counts half."""
_LEAST_BATCHES = 10.0
_ERRORS = 2.0
"""The cost of a record is taken to be so many standard errors more than it seems."""


class FixedCost:
    """The fixed share of batches' time, and never more than is sure: 0 while nothing is known."""

    def __init__(self) -> None:
        self._weight = 0.0
        self._records = self._seconds = 0.0
        """Means."""
        self._spread = self._common = self._residual = 0.0
        """Sums of squares around them: of records, of records times seconds, of seconds."""

    def add(self, records: int, seconds: float) -> None:
        """Take note of a batch that had so many records and took so long."""
        self._weight = self._weight * _KEPT + 1.0
        off, late = records - self._records, seconds - self._seconds
        self._records += off / self._weight
        self._seconds += late / self._weight
        self._spread = self._spread * _KEPT + off * (records - self._records)
        self._common = self._common * _KEPT + off * (seconds - self._seconds)
        self._residual = self._residual * _KEPT + late * (seconds - self._seconds)

    @property
    def share(self) -> float:
        """The share of the mean batch's time, from 0 to 1."""
        if self._weight < _LEAST_BATCHES or self._spread <= 0 or self._seconds <= 0:
            return 0.0
        slope = max(self._common / self._spread, 0.0)
        left = max(self._residual - slope * self._common, 0.0)
        error = math.sqrt(left / (self._weight - 2) / self._spread)
        variable = (slope + _ERRORS * error) * self._records
        return min(max(1.0 - variable / self._seconds, 0.0), 1.0)

    @property
    def record_seconds(self) -> float:
        """What a further record takes, at most; 0 while nothing is known, as of batches that all
        have equally many."""
        if self._weight < _LEAST_BATCHES or self._records <= 0 or self._spread <= 0:
            return 0.0
        return (1.0 - self.share) * self._seconds / self._records
