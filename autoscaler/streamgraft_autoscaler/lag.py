"""The lag signals of the scaling policy (autoscaling paper, section 4.1).

The paper multiplies the largest lag of a task by its partitions (Eq. 2), an upper bound, because
its engine reported no more. Here the lag of every partition is known, so the sum is exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from streamgraft_autoscaler.readiness import NotReadyError, Reason, require_finite

LISTED = 5
"""Topics that a message names."""


@dataclass(frozen=True, slots=True)
class TopicLag:
    """Lag of one input topic of a region."""

    topic: str
    records: float
    """Sum over the partitions that were measured."""
    partitions: int
    """How many were measured."""


@dataclass(frozen=True, slots=True)
class TotalLag:
    """The total lag of a region (Eq. 2)."""

    value: float
    """Records that wait in front of the region."""
    topics: tuple[TopicLag, ...]
    """The lag of each input topic."""


@dataclass(frozen=True, slots=True)
class RelativeLagChange:
    """The relative change of the lag (Eq. 3)."""

    value: float
    """`value` x width is the width that keeps up with the load (dimensionless)."""
    lag_change: float
    """Derivative of the total lag, records/s, positive while it grows."""
    processing_rate: float
    """Records/s."""
    overshoot: float
    """Multiplier of the fraction; the paper's is 1."""


@dataclass(frozen=True, slots=True)
class GatedLagChange:
    """Eq. 4: Eq. 3 above the threshold, its negative elsewhere.

    A negative value takes no part in the HPA's maximum, which lets the utilization scale down.
    """

    value: float
    lag: TotalLag
    threshold: float
    change: RelativeLagChange


def total_lag(topics: Sequence[TopicLag], expected_partitions: int) -> TotalLag:
    """Return Eq. 2. NotReadyError unless all `expected_partitions` of every topic are measured."""
    if not topics:
        raise NotReadyError(Reason.NO_DATA, "no lag of any input topic was measured")
    partial = [topic for topic in topics if topic.partitions != expected_partitions]
    if partial:
        listed = ", ".join(
            f"{topic.partitions} of {expected_partitions} partitions of {topic.topic}"
            for topic in partial[:LISTED]
        )
        more = f" and {len(partial) - LISTED} more topics" if len(partial) > LISTED else ""
        raise NotReadyError(Reason.NO_DATA, f"lag is known for {listed}{more} only")
    require_finite({f"lag of {topic.topic}": topic.records for topic in topics})
    return TotalLag(sum(topic.records for topic in topics), tuple(topics))


def relative_lag_change(
    lag_change: float, processing_rate: float, *, overshoot: float = 1.0
) -> RelativeLagChange:
    """Return Eq. 3: 1 + deriv(totalLag) / totalRate.

    With nothing processed it is 1 if the lag stands still (an idle region), else undefined:
    NotReadyError.
    """
    require_finite({"lag change": lag_change, "processing rate": processing_rate})
    if processing_rate > 0:
        value = 1.0 + overshoot * lag_change / processing_rate
        require_finite({"relative lag change rate": value})
    elif lag_change == 0:
        value = 1.0
    else:
        raise NotReadyError(
            Reason.UNDEFINED,
            f"the lag changes by {lag_change:g} records/s while nothing is processed",
        )
    return RelativeLagChange(value, lag_change, processing_rate, overshoot)


def gated_lag_change(lag: TotalLag, change: RelativeLagChange, threshold: float) -> GatedLagChange:
    """Return Eq. 4.

    At exactly the threshold the paper's fraction is 0/0; here that counts as below, so that
    a threshold of 0 lets an idle region shrink.
    """
    require_finite({"threshold": threshold})
    sign = 1.0 if lag.value > threshold else -1.0
    return GatedLagChange(sign * change.value, lag, threshold, change)
