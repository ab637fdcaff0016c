"""A region that is simulated: records wait in shards, channels work them off, width changes cost.

It is a model and no proof: what a policy does with a load, not what Spark does with records.
"""

import math
from dataclasses import dataclass

from streamgraft_autoscaler.fitting import Shards
from streamgraft_autoscaler.pricing import MeasuredChange

FIXED_SHARE = 0.1
"""Batches grow before their fixed cost takes more than this share of a channel's time."""
LAUNCH_SECONDS, BATCH_SECONDS = 30.0, 1.0
"""What is assumed where nobody knows better."""


@dataclass(frozen=True, slots=True)
class RegionModel:
    """What is assumed of a region."""

    true_rate: float
    """Records/s of one busy channel when it is the only one."""
    shards: int
    """Shards of the region."""
    loss_per_channel: float = 0.0
    """Share of the rate that each further channel costs all of them."""
    largest_shard: float = 0.0
    """Share of the records that the first shard gets; 0: an even share."""
    median_shard: float = 1.0
    """Share that half of them get at most; more than an even share of the rest: that."""
    batch_seconds: float = BATCH_SECONDS
    """The trigger interval."""
    batch_cost_seconds: float = 0.05
    """Busy time of a batch without records."""
    launch_seconds: float = LAUNCH_SECONDS
    """Until a new channel is warm."""
    pause_seconds: float = 1.0
    """How long the shards of channels that give or take some stand still: such a channel has one
    query over all of its shards."""
    restarts: bool = False
    """Whether every width change writes a savepoint (`launch_seconds`) and then moves all shards at
    once, as a Flink job's does."""

    @property
    def division(self) -> Shards:
        """Return how its records are divided."""
        return Shards(self.shards, self.largest_shard, self.median_shard)

    def rate_at(self, width: int) -> float:
        """Return the records/s of one busy channel of `width`."""
        return self.true_rate * max(1.0 - self.loss_per_channel * (width - 1), 0.1)

    def affected_share(self, before: int, after: int) -> float:
        """Return the share of the shards that stand still in a change between these widths."""
        staying, most = min(before, after), max(before, after)
        if self.restarts or not staying:
            return 1.0
        moved = math.ceil(self.shards * (1 - staying / most))
        return min(moved, staying) / staying

    def interval(self, shards: int) -> float:
        """Return the time from one batch of a shard to its next, in a channel with so many."""
        return max(self.batch_seconds, shards * self.batch_cost_seconds / FIXED_SHARE)

    def busy_share(self, width: int, rate: float) -> float:
        """Return the busy share of the fullest of `width` channels at `rate` records/s in all: the
        first one, as shards are dealt in turn."""
        shards = math.ceil(self.shards / width)
        share = sum(self.division.shares()[::width])
        fixed = shards * self.batch_cost_seconds / self.interval(shards)
        return rate * share / self.rate_at(width) + fixed


class SimulatedRegion:
    """A region at work. Totals count from the start: records, busy seconds of all channels.

    New channels serve as soon as they are warm, those wanted later somewhat later.
    """

    def __init__(self, model: RegionModel, width: int) -> None:
        self._model = model
        self._shares = model.division.shares()
        self._waiting = [0.0] * model.shards
        self._launches: list[tuple[float, int]] = []
        self._standing, self._affected = 0.0, 0.0
        self.changes: list[MeasuredChange] = []
        """Width changes that are over."""
        self.width = self.wanted = width
        self.resizing = False
        self.arrived = self.processed = self.busy_seconds = 0.0
        self.delay = 0.0
        """Seconds that a record that arrives now waits in the fullest channel."""

    @property
    def lag(self) -> float:
        """Return the records not yet committed: those that wait, and those of running batches."""
        return sum(self._waiting) + self._in_flight

    @property
    def batch_seconds(self) -> float:
        """Return the time from one batch of a shard to its next, in the fullest channel."""
        return self._model.interval(math.ceil(self._model.shards / max(self.width, 1)))

    @property
    def channels_busy(self) -> list[float]:
        """Return the busy share of each channel in the last step."""
        return self._busy

    _in_flight = 0.0
    _busy: list[float] = []

    def want(self, width: int) -> None:
        """Set the wanted width, as the HPA does through /scale."""
        if self._model.restarts:
            if width != self.wanted:
                self._launches = [(self._model.launch_seconds, width)]
        else:
            self._launches = [
                (left, min(to, width)) for left, to in self._launches if to > self.width
            ]
            if width > max([self.width, *(to for _, to in self._launches)]):
                self._launches.append((self._model.launch_seconds, width))
        self.wanted = width

    def step(self, seconds: float, rate: float) -> None:
        """Let `seconds` pass with `rate` records/s arriving."""
        self._change_width(seconds)
        stopped = self._affected * min(self._standing, seconds)
        self._standing = max(self._standing - seconds, 0.0)
        self.arrived += rate * seconds
        self._in_flight = rate * min(self.batch_seconds, seconds) if self.width else 0.0
        for shard, share in enumerate(self._shares):
            self._waiting[shard] += rate * seconds * share
        waits = self.width == 0 and self.lag > 0
        self._busy, self.delay = [], self.delay + seconds if waits else 0.0
        for channel in range(self.width):
            self._work(range(channel, self._model.shards, self.width), seconds, rate, stopped)
        self.delay += self._standing

    def _change_width(self, seconds: float) -> None:
        """Go on with a width change; the shards that it affects stand still from now on."""
        self.resizing = self.width != self.wanted or self._standing > 0
        if self.width == self.wanted:
            return
        self._launches = [(left - seconds, to) for left, to in self._launches]
        warm = [to for left, to in self._launches if left <= 0]
        if self._model.restarts:
            width = warm[-1] if warm else self.width
        else:
            width = min(self.wanted, max([self.width, *warm]))
        if width != self.width:
            self._affected = self._model.affected_share(self.width, width)
            self._standing = self._model.pause_seconds
            self.changes.append(self._measured(width))
            self.width = width

    def _measured(self, width: int) -> MeasuredChange:
        idle = self._model.launch_seconds if width > self.width else self._model.pause_seconds
        still = self._affected * max(width, self.width)
        return MeasuredChange(abs(width - self.width), idle, still, woke=self.width == 0)

    def _work(self, shards: range, seconds: float, rate: float, stopped: float) -> None:
        """Let one channel work on its shards, which stand still for `stopped` seconds of them."""
        model, speed = self._model, self._model.rate_at(self.width)
        interval = model.interval(len(shards))
        fixed = len(shards) * model.batch_cost_seconds / interval if rate > 0 else 0.0
        waiting = sum(self._waiting[shard] for shard in shards)
        done = min(waiting, speed * max(seconds * (1 - fixed) - stopped, 0.0))
        left = 1 - done / waiting if waiting else 0.0
        for shard in shards:
            self._waiting[shard] *= left
        busy = done / speed + fixed * seconds
        self.processed += done
        self.busy_seconds += busy
        self._busy.append(busy / seconds)
        self.delay = max(self.delay, interval + waiting * left / speed)
