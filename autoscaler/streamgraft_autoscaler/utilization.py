"""The utilization signal (autoscaling paper, section 4.2)."""

from collections.abc import Sequence
from dataclasses import dataclass

from streamgraft_autoscaler.readiness import NotReadyError, Reason, require_finite


@dataclass(frozen=True, slots=True)
class StageIdleness:
    """How idle the PEs of one stage are that hold shards."""

    idle_share: float
    """Their mean, 0 to 1."""
    elements: int
    """How many of them were measured."""
    weight: float = 1.0
    """What each of them counts in the mean of all: the paper's finer-grained approach, for who
    knows which operators are heavy."""


@dataclass(frozen=True, slots=True)
class Utilization:
    """The utilization of a region (Eq. 5)."""

    value: float
    """Mean share of time that the tasks are busy, 0 to 1."""
    idle_share: float
    """Weighted mean over the PEs that hold shards, 0 to 1."""
    elements: int
    """How many of these PEs were measured."""


def utilization(stages: Sequence[StageIdleness], expected_elements: int) -> Utilization:
    """Return Eq. 5: 1 - mean idle share. NotReadyError unless enough PEs are measured.

    The paper leaves out source tasks, whose idle time its engine misreports; in a PE the source is
    fused with the work, and busy time is that of the tasks.
    """
    elements = sum(stage.elements for stage in stages)
    if elements < expected_elements or not elements:
        message = f"busy time is known for {elements} of {expected_elements} PEs"
        raise NotReadyError(Reason.NO_DATA, message)
    weights = sum(stage.elements * stage.weight for stage in stages)
    if not weights:
        message = "all operators of the region have the weight 0: give one of them another"
        raise NotReadyError(Reason.INVALID, message)
    idle_share = sum(stage.elements * stage.weight * stage.idle_share for stage in stages) / weights
    require_finite({"idle share": idle_share})
    # Task time is counted when a task ends, so a window can hold a little more than itself.
    value = min(max(1.0 - idle_share, 0.0), 1.0)
    return Utilization(value, idle_share, elements)
