"""How the shards of a stage are staggered within an interval, the same with every owner. Pure."""

from dataclasses import dataclass

_END_SECONDS = 0.2
"""What the end of one batch and the beginning of the next take, with a core for them."""
_MOVE_SECONDS = 0.4
"""What a shard's move to another driver takes."""


@dataclass(frozen=True)
class Stagger:
    """The place of a shard among those of its stage."""

    number: int = 0
    """From 0."""
    count: int = 1
    """Shards of the stage."""

    @property
    def share(self) -> float:
        """Where in each interval its trigger is, from 0 to 1.

        Not at the beginning unless alone: there the queries outside of the region are triggered.
        """
        return 0.0 if self.count == 1 else (self.number + 0.5) / self.count

    def seconds_to_lull(self, now: float, interval_seconds: float) -> float:
        """Return the seconds until a move meets no trigger of another shard.

        0 if none is met now, or if shards are too close for a lull. `now`: Unix time.
        """
        between = interval_seconds / self.count
        since = (now - between / 2) % between
        if self.count == 1 or between < _END_SECONDS + _MOVE_SECONDS:
            return 0.0
        if _END_SECONDS <= since <= between - _MOVE_SECONDS:
            return 0.0
        return (_END_SECONDS - since) % between


ALONE = Stagger()
"""No other shard in the same stage."""
