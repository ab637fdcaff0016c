"""What a width change costs, in time of channels: given, or measured from a region's own changes.

Two things cost something: channels that are paid and serve nothing (they start, or wait to be
removed), and shards that stand still, which delays the records that they would have processed.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

DELAY_WEIGHT = 10.0
"""A second in which a channel's records wait costs as much as so many seconds of a channel."""
ASSUMED_CHANNEL_SECONDS = 300.0
"""Price as long as no change was measured."""
LATEST_CHANGES = 10
"""The newest changes count: what a start costs may change with the cluster."""


@dataclass(frozen=True, slots=True)
class MeasuredChange:
    """A past width change that was finished."""

    channels: int
    """Channels that came or went."""
    idle_seconds: float
    """For how long they were there without serving, on average."""
    still_channels: float
    """Shards that stood still, as they moved or their query started anew, in channels."""
    woke: bool = False
    """Whether the region had slept, so that all records waited until a channel served."""

    def followed_by(self, rest: "MeasuredChange") -> "MeasuredChange":
        """Return both as one change: that of which `rest` is the next part."""
        channels = self.channels + rest.channels
        idle = self.channels * self.idle_seconds + rest.channels * rest.idle_seconds
        still = self.still_channels + rest.still_channels
        return MeasuredChange(channels, idle / channels, still, self.woke)


@dataclass(frozen=True, slots=True)
class ChangePrice:
    """What a width change must save."""

    channel_seconds: float
    """Seconds of one channel."""
    reason: str
    """Where the price comes from."""
    per_channel_of_peak: float | None = None
    """The price in seconds of all channels at the largest width of the last day, if it was given
    so."""

    def hours(self, largest_width: int) -> float:
        """Return the price in channel-hours; `largest_width`: that was needed in the last day."""
        if self.per_channel_of_peak is not None:
            return self.per_channel_of_peak * largest_width / 3600
        return self.channel_seconds / 3600

    @classmethod
    def given(cls, seconds: float) -> Self:
        """Return a price that was asked for, in seconds of all channels at the largest width."""
        return cls(0.0, f"asked for: {seconds:g} s of the last day's largest width", seconds)


def measured_price(changes: Sequence[MeasuredChange], pause_seconds: float) -> ChangePrice:
    """Return the price from past changes, oldest first: the median of the newest ones.

    `pause_seconds`: how long a shard is expected to stand still in the next one.
    """
    newest = changes[-LATEST_CHANGES:]
    if not newest:
        return ChangePrice(ASSUMED_CHANNEL_SECONDS, "assumed, as no width change was measured yet")
    cost = statistics.median(_cost(change, pause_seconds) for change in newest)
    idle = statistics.median(change.idle_seconds for change in newest)
    still = statistics.median(change.still_channels for change in newest)
    reason = (
        f"measured in {len(newest)} changes: channels were there for {idle:.0f} s without serving,"
        f" {still:.2g} channels' worth of shards were affected, each expected to stand still for"
        f" {pause_seconds:.2g} s (which counts {DELAY_WEIGHT:g} times)"
    )
    return ChangePrice(cost, reason)


def _cost(change: MeasuredChange, pause_seconds: float) -> float:
    idle = change.channels * change.idle_seconds
    delayed = idle if change.woke else change.still_channels * pause_seconds
    return idle + DELAY_WEIGHT * delayed
