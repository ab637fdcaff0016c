"""How often the queries of a PE look for records: the trigger interval by what batches take. Pure.

A micro-batch costs CPU whatever its size (docs/use/batch-cost.md has the figures), and a record
waits half an interval for it. So a PE spends up to half of a core's time on batches, and none of it
while CPU is short: the interval is as short as that allows, and the user's trigger is the longest.

Only a PE with a query per shard, whose fixed costs alone could fill its slots, has longer ones.

A PE that is behind runs one batch after the other: each is full, so waiting would save nothing.

What more batches cost is no load: a channel would look busy that has little to do.
"""

from dataclasses import dataclass

from streamgraft_common.triggers import SHARE, assumed_batch, longest_interval
from streamgraft_pe_runtime.fixed_cost import FixedCost

SHORTEST = 0.1
"""Seconds between two triggers at least: looking for records costs something, too."""
_NEWEST = 0.2
"""Weight of the newest batch in the mean."""
_CALM, _SHORT = 0.25, 0.75
"""CPU pressure up to which the whole share may be taken, and from which none."""
_BEHIND = 2
"""So many batches or intervals: who keeps up has no more work waiting, that of a batch that runs
included."""
_NOTICEABLE = 0.15
"""By less than this share an interval is not changed."""


@dataclass(frozen=True)
class Work:
    """What a PE has to do."""

    queries: int
    slots: int
    shards: int
    """Of a query."""
    stateful: bool
    behind: bool = False
    """Whether the next batch is full whenever it begins."""
    pressure: float = 0.0
    """Share of time in which something waited for CPU."""

    @property
    def assumed(self) -> float:
        """What a batch is assumed to take."""
        return assumed_batch(self.shards, stateful=self.stateful)


class Pace:
    """What the batches of a PE's queries take, and what follows for their triggers."""

    def __init__(self, trigger_seconds: float) -> None:
        """`trigger_seconds`: the user's."""
        self.trigger_seconds = trigger_seconds
        self._chosen = trigger_seconds
        """The interval by which there are more batches than the user asked for."""
        self._batches = 0
        self._seconds = 0.0
        """Mean of a batch."""
        self._fixed = FixedCost()

    def took(self, seconds: float, records: int, computing: float) -> None:
        """Take note of a batch that had records. `computing`: the seconds in which it had tasks."""
        self._batches += 1
        weight = max(_NEWEST, 1 / self._batches)
        self._seconds += weight * (seconds - self._seconds)
        self._fixed.add(records, computing)

    def needed(self, busy: float) -> float:
        """Return the task time that the work would have taken with the user's trigger, of the
        `busy` seconds that it took; all of it behind a backlog."""
        more = 1.0 - min(self._chosen / self.trigger_seconds, 1.0)
        return busy * (1.0 - self._fixed.share * more)

    def is_behind(self, lag: int, batch_limit: int) -> bool:
        """Return whether a query's waiting records would fill half a batch, or, where records are
        dear, take longer than two batches or intervals."""
        patience = _BEHIND * max(self._seconds, self.trigger_seconds)
        return 2 * lag >= batch_limit or lag * self._fixed.record_seconds > patience

    def interval(self, now: float, work: Work) -> float:
        """Return the seconds between the triggers of each query of the PE. `now`: what they are."""
        if work.behind:
            self._chosen = self.trigger_seconds  # full batches are no more of them
            return min(SHORTEST, self.trigger_seconds)
        self._chosen = self._affordable(now, work)
        return self._chosen

    def _affordable(self, now: float, work: Work) -> float:
        longest = longest_interval(self.trigger_seconds, work.queries, work.slots, work.assumed)
        share = SHARE * min(max((_SHORT - work.pressure) / (_SHORT - _CALM), 0.0), 1.0)
        batch = self._seconds if self._batches else work.assumed
        least = min(SHORTEST, self.trigger_seconds)
        wanted = min(max(work.queries * batch / share, least), longest) if share else longest
        return now if least <= now <= longest and _is_near(wanted, now, longest) else wanted


def _is_near(wanted: float, now: float, longest: float) -> bool:
    return wanted != longest and abs(wanted - now) < _NOTICEABLE * now


def fill_a_batch(lag: int, batch_limit: int) -> bool:
    """Return whether they would fill a whole one, so that waiting for more saves nothing."""
    return lag >= batch_limit
