"""ConsistentRegion: operators of a job that are checkpointed and reset together."""

from typing import Annotated, Literal

from pydantic import Field

from streamgraft_common.resources.base import (
    CelRule,
    Condition,
    CustomKind,
    JobName,
    Model,
    PrinterColumn,
    RegionName,
)


class ConsistentRegionSpec(Model):
    """Which operators, and when they are checkpointed."""

    job: JobName
    """Job that the region belongs to."""
    region: RegionName
    """Its name in the application."""
    operators: list[str] = []
    """Operators of the region."""
    trigger: Literal["periodic", "operatorDriven"] = "periodic"
    """Who begins a checkpoint: the clock, or a source operator."""
    period_seconds: Annotated[float, Field(gt=0)] | None = None
    """Time between checkpoints; for trigger periodic."""
    drain_timeout_seconds: Annotated[float, Field(gt=0)] = 180.0
    """Time in which all operators must have been drained."""
    reset_timeout_seconds: Annotated[float, Field(gt=0)] = 180.0
    """Time in which all operators must be back at the last checkpoint."""
    max_consecutive_reset_attempts: Annotated[int, Field(ge=1)] = 5
    """Resets that may fail in a row before the region is given up."""


class ConsistentRegionStatus(Model):
    """How far it is."""

    state: Literal["Starting", "Running", "Draining", "Resetting", "Failed"] = "Starting"
    """What it is doing."""
    sequence_id: int = 0
    """Number of the last checkpoint that was begun."""
    completed_sequence_id: int = 0
    """Number of the last checkpoint that is complete: a reset leads there."""
    reset_attempts: int = 0
    """Resets that failed in a row."""
    observed_generation: int = 0
    """metadata.generation of the spec that this status is about."""
    conditions: list[Condition] = []
    """Ready: False with reason NotSupported, since this version does nothing with it."""


CONSISTENT_REGION = CustomKind(
    kind="ConsistentRegion",
    plural="consistentregions",
    short_names=["cr"],
    spec=ConsistentRegionSpec,
    status=ConsistentRegionStatus,
    rules=[
        CelRule(
            rule="(!has(self.trigger) || self.trigger == 'periodic') == has(self.periodSeconds)",
            message="trigger periodic needs periodSeconds, and operatorDriven does not take it",
        )
    ],
    columns=[
        PrinterColumn(name="State", type="string", json_path=".status.state"),
        PrinterColumn(name="Checkpoint", type="integer", json_path=".status.completedSequenceId"),
        PrinterColumn(name="Age", type="date", json_path=".metadata.creationTimestamp"),
    ],
)
