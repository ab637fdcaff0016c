"""How many records of an input a batch may have: what takes as long as the trigger. Pure.

A shard that moves waits for the end of a batch, and its new owner serves with the end of its first.
Behind a backlog a batch is as long as its limit lets it be. A number of records says little of
that: an operator may take microseconds for one, or ask a service. So a PE finds the number by the
batches before, up to the limit that the application sets.

The first batch of a query is small, whatever waits: it ends soon.
"""

import math

from streamgraft_pe_runtime.fixed_cost import FixedCost

FIRST = 100
"""Most records of an input in the first batch of a query."""
_FIXED_TIMES = 4.0
"""A full batch may take so many times what a batch takes without records: no more than a quarter
of the time is lost to it, however short the trigger is."""
_LEAST_LEFT = 0.5
"""A limit falls to this share of itself at most at a time: one slow batch says little."""


class BatchSize:
    """The limit of a PE's batches, by the batches that it had."""

    def __init__(self, trigger_seconds: float, most: int) -> None:
        """`most`: the application's limit, records of an input."""
        self._trigger_seconds = trigger_seconds
        self._most = most
        self._cost = FixedCost()
        self._quickest = math.inf
        self.limit = min(FIRST, most)
        """Records of an input."""

    def took(self, seconds: float, records: int) -> None:
        """Take note of a batch. `records`: of the input that had most of them."""
        if not records:
            return
        self._cost.add(records, seconds)
        self._quickest = min(self._quickest, seconds)
        wanted = records * self._wanted_seconds / max(seconds, 0.001)
        if wanted < records:  # it took too long
            wanted = max(wanted, _LEAST_LEFT * self.limit)
        else:  # part of the time did not depend on the records, so more than that may be right
            wanted = max(wanted, self.limit)
        self.limit = min(max(round(wanted), 1), self._most)

    @property
    def _wanted_seconds(self) -> float:
        fixed = min(self._cost.seconds, self._quickest)
        return max(self._trigger_seconds, _FIXED_TIMES * fixed)
