"""ConsistentRegion: operators of a job that are checkpointed together, in cuts.

A cut is a Savepoint of the region's stages: no record is then between two of them.
"""

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
    """Who begins a cut: the clock, or whoever raises `requested`."""
    period_seconds: Annotated[float, Field(gt=0)] | None = None
    """Time from the begin of a cut to that of the next one; for trigger periodic."""
    requested: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    """A cut with at least this number is wanted, whatever the clock says: raise it above
    `status.sequenceId`. However far above, that is one cut, and it has this number."""
    rollback_requested: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    """A rollback with at least this number is wanted, to the last cut: raise it above
    `status.rollbackId`. However far above, that is one rollback, and it has this number."""
    drain_timeout_seconds: Annotated[float, Field(gt=0)] = 180.0
    """Time in which all operators must have been drained and copied, or the cut is given up. A
    rollback is begun anew if they do not stand still by then."""
    retained_cuts: Annotated[int, Field(ge=1, le=100)] = 3
    """Cuts that are kept, the last one included."""
    repository: bool = True
    """Whether cuts are kept in the repository of the job as well, if that has one."""
    roll_back_on: Literal["damage", "failure", "never"] = "never"
    """What has the region go back to its last cut by itself. damage: a shard's checkpoint can't be
    read. failure: also a pod of the region that ended or was deleted, and a query that failed."""
    max_rollbacks: Annotated[int, Field(ge=1, le=100)] = 5
    """So many times in a row it goes back by itself, without a cut between them."""


class Cut(Model):
    """A cut that is complete."""

    number: int
    """Its number."""
    savepoint: str
    """Savepoint that holds it."""
    completed_at: str = ""
    """When the last copy was there (RFC 3339)."""
    still_seconds: float = 0.0
    """So long its sources stood still."""
    size_bytes: int = 0
    """Size of all files; blocks that are shared with checkpoints count, too."""
    unclean_shards: int = 0
    """Shards whose pod died within a batch while they stopped. With any the region does not go back
    to the cut: what came behind these shards may have read that batch, which would come again."""
    damaged: str = ""
    """What of it is damaged or missing; the region does not go back to it either."""


class ConsistentRegionStatus(Model):
    """How far it is."""

    state: Literal["Starting", "Running", "Draining", "RollingBack"] = "Starting"
    """Starting: it has no cut yet. Draining: a cut is under way. RollingBack: all of it goes back
    to a cut."""
    sequence_id: int = 0
    """Number of the last cut that was begun."""
    completed_sequence_id: int = 0
    """Number of the last cut that is complete."""
    begun_at: str | None = None
    """When the last cut was begun (RFC 3339)."""
    ended_at: str | None = None
    """When the last one that ended was complete, or given up (RFC 3339)."""
    cuts: list[Cut] = []
    """Cuts that are kept, oldest first."""
    failed_cuts: int = 0
    """Cuts in a row that were given up."""
    rollback_id: int = 0
    """Number of the last rollback that was begun."""
    completed_rollback_id: int = 0
    """Number of the last rollback that is complete."""
    rolls_back_to: str = ""
    """Savepoint of the cut that the last rollback went, or goes, back to."""
    rollback_begun_at: str | None = None
    """When the last rollback was begun (RFC 3339)."""
    rollbacks_in_a_row: int = 0
    """How often it went back by itself since the last complete cut, or since it was asked to."""
    pending_failures: dict[str, str] = {}
    """Failures that it is to go back for as soon as it can, each with what it was."""
    seen_failures: list[str] = []
    """Failures that it has gone back for, or did not have to."""
    taken_requests: dict[str, str] = {}
    """PE → id of the last request of its functions that a cut was begun for."""
    observed_generation: int = 0
    """metadata.generation of the spec that this status is about."""
    conditions: list[Condition] = []
    """Ready: there is a cut, and the last attempt at one did not fail."""


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
        PrinterColumn(name="Cut", type="integer", json_path=".status.completedSequenceId"),
        PrinterColumn(name="Age", type="date", json_path=".metadata.creationTimestamp"),
    ],
)
