"""What a width change costs: how long a moved shard stands still, from what past changes took.

The autoscaling paper (section 5.4) finds the time to load state linear in its size; so is the
expectation, as far as the past shows it.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

UNKNOWN_PAUSE_SECONDS = 2.0
"""Expected pause as long as none was measured."""
LONGEST_SECONDS, LARGEST_BYTES = 86_400.0, 1e15
"""Of what is believed to be measured."""


@dataclass(frozen=True, slots=True)
class MeasuredPause:
    """Longest pause of a past width change, and the state of the largest shard then, bytes."""

    seconds: float
    state_bytes: float

    def __post_init__(self) -> None:
        """Raise ValueError unless both can be."""
        if not (0 <= self.seconds <= LONGEST_SECONDS and 0 <= self.state_bytes <= LARGEST_BYTES):
            raise ValueError(f"no width change pauses like this: {self}")


@dataclass(frozen=True, slots=True)
class ExpectedPause:
    """How long a width change is expected to stop a shard."""

    seconds: float
    """`fixed_seconds` + `seconds_per_byte` x the size of the state."""
    fixed_seconds: float
    """The part that does not depend on the state."""
    seconds_per_byte: float
    """The part that each byte of a shard's state adds."""
    changes: int
    """How many past changes it is learned from."""


def expected_pause(measured: Sequence[MeasuredPause], state_bytes: float) -> ExpectedPause:
    """Return what to expect with `state_bytes` in the largest shard.

    The straight line of least squares; the median, whatever the state, where the past shows no
    growth with it or too few sizes.
    """
    if not measured:
        return ExpectedPause(UNKNOWN_PAUSE_SECONDS, UNKNOWN_PAUSE_SECONDS, 0.0, 0)
    typical = statistics.median(pause.seconds for pause in measured)
    sizes = [pause.state_bytes for pause in measured]
    if len(set(sizes)) < 3:
        return ExpectedPause(typical, typical, 0.0, len(measured))
    slope, intercept = statistics.linear_regression(sizes, [pause.seconds for pause in measured])
    if slope <= 0 or intercept < 0:
        return ExpectedPause(typical, typical, 0.0, len(measured))
    return ExpectedPause(intercept + slope * state_bytes, intercept, slope, len(measured))
