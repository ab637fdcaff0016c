"""Savepoint: a copy of a job's state that can be kept, and that a job can start from."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field

from streamgraft_common.adl import StateTable
from streamgraft_common.resources.base import (
    CelRule,
    Condition,
    CustomKind,
    JobName,
    Model,
    PrinterColumn,
    RegionName,
)
from streamgraft_common.resources.settings import CheckpointRepository

FORMAT = 1
"""Version of what a savepoint holds that this release writes, and the newest that it restores."""


class SavedInput(Model):
    """A stream that a stage reads."""

    stream: str
    """Its name in the application."""
    topic: str
    """The topic that it was read from."""
    external: bool = False
    """Whether the topic is the users'. One of the job's own was read to its end."""
    brokers: list[str] | None = None
    """Addresses of brokers that its source names itself; none of them: it is at the job's own.
    Absent if that was not noted."""
    columns: dict[str, str] | None = None
    """The types of its columns, if the topic is the job's own. Absent if they were not noted."""


class SavedExport(Model):
    """A stream that a stage publishes."""

    stream: str
    """Its name in the application."""
    topic: str
    """The topic that other jobs read."""
    columns: dict[str, str] | None = None
    """The types of its columns. Absent if they can't be told."""


class SavedState(Model):
    """State that Spark keeps for one part of a stage's query."""

    operator: str
    """Spark's name of it, such as stateStoreSave."""
    key: list[str] = []
    """Columns by which it is kept; none if it can't be taken apart by them."""


class SavedPlan(Model):
    """What the state of an operator follows from, beside the streams that its stage reads."""

    code: str
    """Hash of the code of the operator, and of those before it in its stage."""
    parameters: dict[str, str]
    """Submission-time values that the job runs it with: of parameters that it reads, or of all if
    it can't be known which those are."""
    built_with: dict[str, str]
    """Values of the same that its tables were made with."""

    @property
    def foreign(self) -> dict[str, str]:
        """Those of the values that its tables were not made with: then they are another plan's."""
        given = self.parameters.items()
        return {name: value for name, value in given if value != self.built_with.get(name)}


class SavedStage(Model):
    """What the PEs of one stage had in common: each of its shards is one Spark query."""

    name: str
    """That of its first operator with state, or else of its first operator."""
    shards: int
    """Key groups of the region; 1 outside of regions."""
    region: RegionName | None = None
    """Parallel region that it is in."""
    key: list[str] = []
    """Columns by which the region spreads rows over its key groups."""
    operators: list[str]
    """Its operators, upstream first."""
    stateful: list[str] = []
    """Those of them that have state."""
    inputs: list[SavedInput] = []
    """What it reads."""
    exports: list[SavedExport] = []
    """What it publishes for other jobs."""
    commits: list[str] = []
    """Sinks that put batches aside until a cut makes them final. Empty if they were not noted."""
    life: str = ""
    """What its checkpoints have behind its name: another number each time that it comes back after
    an edit has dropped it."""
    state: list[SavedState] | None = None
    """What its state consists of; absent if that was not noted."""
    tables: dict[str, list[StateTable]] = {}
    """Tables of the state of each operator, as far as its build could tell."""
    plans: dict[str, SavedPlan] | None = None
    """What they were made from, of each operator in `tables` that reads submission-time values.
    Absent if it was not noted."""
    size_bytes: int = 0
    """Size of the copies of its shards."""

    def with_state(self, state: list[SavedState] | None, size_bytes: int = 0) -> Self:
        """Return it with what was noted when its shards were copied."""
        return self.model_copy(update={"state": state, "size_bytes": size_bytes})


class SavepointSpec(Model):
    """What is to be saved."""

    job: JobName
    """Job whose state is copied."""
    region: RegionName | None = None
    """Only this region, for a width change. Default: the whole job."""
    consistent_region: RegionName | None = None
    """Only this consistent region: it is one of its cuts."""
    operators: list[str] = []
    """Operators of the consistent region."""
    rolls_back_to: str | None = None
    """Savepoint of a cut: nothing is copied, but that takes the place of the checkpoints."""
    repository: bool = True
    """Whether it is kept in the repository of the job as well, if that has one."""
    timeout_seconds: Annotated[int, Field(ge=1)] = 300
    """Time in which it must be complete, or it fails and the job goes on. Of a rollback: in which
    all must stand still."""


class SavepointStatus(Model):
    """The copy. Times RFC 3339."""

    phase: Literal[
        "Pending", "Draining", "Saving", "Committing", "RollingBack", "Completed", "Failed"
    ] = "Pending"
    """Draining: sources stand still, the rest reads its inputs to their ends. Saving: all stand
    still and are copied; of a rollback: what the cut has is looked at. Committing: all is copied,
    and sinks make the cut final. RollingBack: all stand still, and what a cut has takes the place
    of their checkpoints."""
    format: int = 0
    """Version of the format."""
    parked: list[str] = []
    """Stages that stand still for it now."""
    stages: list[SavedStage] = []
    """What is saved, upstream first."""
    shards: int = 0
    """Shards that are saved."""
    size_bytes: int = 0
    """Size of all files; blocks that are shared with checkpoints count, too."""
    unclean_shards: int = 0
    """Shards whose pod died within a batch while they stopped: what comes from the savepoint runs
    that batch again, so what it had written already is written twice."""
    duration_seconds: float | None = None
    """From the first stop to the last copy: so long the sources stood still, and a little more."""
    save_seconds: float | None = None
    """Time that copying alone took."""
    started_at: str | None = None
    """When the first stage was asked to stop."""
    drained_at: str | None = None
    """When all stood still."""
    completed_at: str | None = None
    """When it was over: the last copy was there, or it failed."""
    ends: dict[str, list[int]] = {}
    """Rollbacks: topics between the stages, and where their partitions ended when all stood still.
    Stages go on from there: what is before was read, or comes again."""
    job_spec: Annotated[
        dict[str, Any],
        Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True}),
    ] = {}
    """The spec of the job then."""
    repository: CheckpointRepository | None = None
    """The job's checkpointRepository then, with what it has of the installation's: the copies are
    there, whatever either says later. Absent if it was not noted."""
    generation_id: int = 0
    """Generation of the job's graph."""
    content_id: str = ""
    """Hash of the job's graph and settings."""
    bundle_digest: str = ""
    """sha256 of the bundle that ran."""
    widths: dict[str, int] = {}
    """Widths of the regions then."""
    message: str = ""
    """What it waits for, or why it failed."""
    damaged: bool = False
    """Rollbacks: whether it failed because what the cut has is damaged or missing."""
    observed_generation: int = 0
    """metadata.generation of the spec that this status is about."""
    conditions: list[Condition] = []
    """Complete."""


SAVEPOINT = CustomKind(
    kind="Savepoint",
    plural="savepoints",
    short_names=["sp"],
    spec=SavepointSpec,
    status=SavepointStatus,
    rules=[
        CelRule(
            rule="self == oldSelf",
            message="a savepoint can't change: create another one",
        )
    ],
    columns=[
        PrinterColumn(name="Job", type="string", json_path=".spec.job"),
        PrinterColumn(name="Phase", type="string", json_path=".status.phase"),
        PrinterColumn(name="Shards", type="integer", json_path=".status.shards"),
        PrinterColumn(name="Bytes", type="integer", json_path=".status.sizeBytes"),
        PrinterColumn(name="Seconds", type="number", json_path=".status.durationSeconds"),
        PrinterColumn(name="Message", type="string", json_path=".status.message", priority=1),
        PrinterColumn(name="Age", type="date", json_path=".metadata.creationTimestamp"),
    ],
)
