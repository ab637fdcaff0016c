"""The utilization signal (autoscaling paper, section 4.2)."""

from dataclasses import dataclass

from streamgraft_autoscaler.readiness import NotReadyError, Reason, require_finite


@dataclass(frozen=True, slots=True)
class Utilization:
    """The utilization of a region (Eq. 5)."""

    value: float
    """Mean share of time that the tasks are busy, 0 to 1."""
    idle_share: float
    """Mean over the PEs that hold shards, 0 to 1."""
    elements: int
    """How many of these PEs were measured."""


def utilization(idle_share: float, elements: int, expected_elements: int) -> Utilization:
    """Return Eq. 5: 1 - mean idle share. NotReadyError unless enough PEs are measured.

    The paper leaves out source tasks, whose idle time its engine misreports; in a PE the source is
    fused with the work, and busy time is that of the tasks.
    """
    if elements < expected_elements:
        message = f"busy time is known for {elements} of {expected_elements} PEs"
        raise NotReadyError(Reason.NO_DATA, message)
    require_finite({"idle share": idle_share})
    # Task time is counted when a task ends, so a window can hold a little more than itself.
    value = min(max(1.0 - idle_share, 0.0), 1.0)
    return Utilization(value, idle_share, elements)
