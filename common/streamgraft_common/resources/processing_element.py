"""ProcessingElement: one PE of a job. Written by the operator; its pod watches it.

`status.runtime` belongs to the PE's pod, everything else in the status to the operator. Each
patches only its own part, so the two writers never meet.
"""

from typing import Annotated, Literal

from pydantic import Field

from streamgraft_common.adl import Placement
from streamgraft_common.resources.base import (
    CelRule,
    Condition,
    CustomKind,
    JobName,
    Model,
    PrinterColumn,
)
from streamgraft_common.resources.savepoint import SavedState
from streamgraft_common.resources.settings import PodSettings
from streamgraft_common.resources.streams import StreamChange


class Saving(Model):
    """A request to copy checkpoints into a savepoint, or to go back to one."""

    savepoint: str
    """Its name."""
    uid: str
    """Its metadata.uid: a later one of the same name is another."""
    shards: list[int]
    """Shards to copy; no PE runs them meanwhile."""
    stages: list[str] = []
    """All stages that are saved with these shards'. Each copy names them: whoever finds fewer knows
    that some are lost."""
    cut: int | None = None
    """Number of the cut of a consistent region that it is."""
    kept: list[str] = []
    """Of a cut: the savepoints with names of cuts of its region that are there. Files of earlier
    cuts may go."""
    commit: bool = False
    """Whether all of the cut is there, so that its sinks are to make it final. Of a rollback:
    whether all copies are whole, so that they are to take the place of the checkpoints."""
    repository: bool = True
    """Whether copies go to the job's repository, too."""
    rolls_back_to: str | None = None
    """Savepoint whose copies take the place of the checkpoints; nothing is copied."""
    ends: dict[str, list[int]] = {}
    """Then: topics, and where in their partitions to go on."""


class MatchedImport(Model):
    """What an import of the PE reads now."""

    operator: str
    """Its import operator."""
    topics: list[str] = []
    """Topics of the exports that are connected."""
    filter: str = ""
    """Spark expression of the rows that are wanted; empty: all."""


class ProcessingElementSpec(Model):
    """The wanted PE. The operator writes all of it but `settings`."""

    job: JobName
    """Job that the PE belongs to."""
    pe_id: Annotated[int, Field(ge=0)]
    """Number of the PE within its job."""
    stage_name: str
    """Its stage of the graph: the name of the operator that the stage keeps state or positions
    for."""
    region: str | None = None
    """Parallel region that it is in."""
    channel: Annotated[int, Field(ge=0)] | None = None
    """Channel of the region."""
    stage: Annotated[int, Field(ge=0)] = 0
    """Index within the channel."""
    bundle_digest: str = ""
    """sha256 of the bundle that its pod runs."""
    slots: Annotated[int, Field(ge=1)] = 1
    """Spark task slots of its driver."""
    spark_conf: dict[str, str] = {}
    """Spark settings of its driver."""
    restartable: bool = True
    """Whether all of its operators may be restarted after a failure."""
    settings: PodSettings = PodSettings()
    """Settings of this PE only, yours to edit; they win over `inherited`."""
    inherited: PodSettings = PodSettings()
    """Settings that the Job has for all of its PEs; edit them there."""
    placement: Placement = Placement()
    """On which nodes its pod runs: what its operators ask for, taken together."""
    shards: list[int] = []
    """Shards that this PE may run now. Outside of a region: [0]."""
    epoch: Annotated[int, Field(ge=0)] = 0
    """Epoch of the assignment that `shards` belongs to."""
    import_operators: list[str] = []
    """Its import operators."""
    imports: list[MatchedImport] = []
    """What these read now: the subscription broker's. They read nothing until it is said."""
    saving: Saving | None = None
    """Checkpoints to copy now."""

    def effective(self) -> PodSettings:
        """Return the settings that hold: the PE's own, else those of its job."""
        return self.settings.over(self.inherited)


class ShardStatus(Model):
    """One shard, as its owner sees it. Times are RFC 3339 with milliseconds.

    Starting → Running → Stopping → (entry removed: released). An entry that is there means that
    the PE may still write for the shard. Failed: its query failed and is being retried.
    """

    state: Literal["Starting", "Running", "Stopping", "Failed"]
    """What its query does."""
    epoch: int
    """Epoch of the spec that gave it to this PE, or confirmed it."""
    busy: float | None = None
    """Share of the time that its batches took recently, 0 to 1. Absent in real-time mode."""
    lag: int | None = None
    """Records of its inputs that it had not committed."""
    started_at: str | None = None
    """When the query was started."""
    first_batch_at: str | None = None
    """When its first batch since then was committed (idle triggers count)."""
    failed_run: str | None = None
    """When the last of its queries was started that ran and failed, since the PE has the shard."""
    message: str = ""
    """Why it failed, and what to do."""
    reason: str = ""
    """The same in one word, for conditions."""


class Release(Model):
    """The last release of a shard by this PE: clean means at a batch boundary."""

    epoch: int
    """Epoch of the spec that took the shard away."""
    released_at: str
    """When it was let go of."""
    last_batch_at: str | None = None
    """End of the last batch, or when the stop was asked for if no batch ran then."""
    clean: bool = True
    """Whether no batch was cut off."""
    resumed: bool = False
    """Whether the PE has taken the shard up again since."""


class Saved(Model):
    """What was copied into a savepoint, or out of one."""

    uid: str
    """metadata.uid of the savepoint."""
    shards: list[int] = []
    """Shards that are there."""
    size_bytes: int = 0
    """Size of their copies."""
    committed: bool = False
    """Whether the sinks have made the cut final."""
    unclean: list[int] = []
    """Those whose last batch was begun and not committed: their pod died within it."""
    state: list[SavedState] | None = None
    """What their state consists of; absent if that was not noted."""
    message: str = ""
    """Why they could not be copied; it is tried again."""
    damaged: bool = False
    """Whether trying again does not help: the copies which are to take the place of checkpoints are
    damaged or missing, or another savepoint has its copies where these are to go."""


class LostRecords(Model):
    """Records that retention deleted before the PE read them."""

    topics: dict[str, int] = {}
    """How many, by topic."""
    last_at: str = ""
    """When it was noticed last (RFC 3339)."""


class Connection(Model):
    """A stream between the PE and others of its job: the topic that they meet in."""

    direction: Literal["in", "out"]
    """Whether the PE reads or writes it."""
    stream: str
    """Name in the application."""
    topic: str
    """Its Kafka topic."""
    connected: bool
    """Whether the topic's brokers answered the last question about it."""
    since: str
    """For how long that has been so (RFC 3339)."""
    message: str = ""
    """Why it is not connected, as of then."""


class RuntimeStatus(Model):
    """What the pod says of itself."""

    pod: str = ""
    """Name of the pod."""
    pod_uid: str = ""
    """metadata.uid of the pod: a later one may have its name."""
    launch_count: int = 0
    """Launch that it is of."""
    ready: bool = False
    """Warm: session up, plan compiled; it can take shards at once."""
    epoch: int = 0
    """Epoch of the last spec that was fully applied."""
    content_id: str = ""
    """Content of the PE (its annotation) that the driver works by."""
    shards: dict[str, ShardStatus] = {}
    """Shards held, by number."""
    releases: dict[str, Release] = {}
    """The last release of every shard that it ever held, by number."""
    reusable: bool = False
    """Whether the pod works for another PE if this one is deleted while it holds no shard."""
    behind: bool = False
    """Whether more records wait than half a batch takes, or than are done in two trigger intervals.
    Said once it is so, and taken back when it has not been so for some seconds."""
    apart: str = ""
    """Why each shard has a query of its own though its stage could share one: what Spark's plan, or
    the driver's settings, have that was not tried with several."""
    saved: Saved | None = None
    """How far the request in `spec.saving` is fulfilled."""
    stream_changes: list[StreamChange] = []
    """What functions of the PE changed of exports and imports: the last change of each field."""
    cut_requests: dict[str, str] = {}
    """Consistent region → id of the last cut that functions of the PE asked for."""
    lost: LostRecords | None = None
    """What was lost, whichever pod noticed it."""
    connections: list[Connection] | None = None
    """Streams from and to other PEs of the job: no outside topics, exports or imports."""
    message: str = ""
    """What is wrong with the PE as a whole."""

    @property
    def failure(self) -> str:
        """What is wrong with the PE as a whole, or else with the first of its shards."""
        failed = [(int(shard), said.message) for shard, said in self.shards.items() if said.message]
        if self.message or not failed:
            return self.message
        shard, message = min(failed)
        more = f" (and {len(failed) - 1} more)" if failed[1:] else ""
        return f"shard {shard}{more} fails and is tried again: {message}"


class Stopped(Model):
    """Why a PE is not launched again."""

    reason: Literal["PodFailed", "PodCompleted", "PodDeleted"]
    """How the last launch ended."""
    version: str = ""
    """Content and settings of the PE then: others launch it again."""


class ProcessingElementStatus(Model):
    """The PE that runs."""

    launch_count: int = 0
    """How often a pod of this PE was asked for. Everything that should restart a PE raises it."""
    launch_reason: str = ""
    """What the last launch was for."""
    failure_count: int = 0
    """Launches in a row that ended by themselves."""
    not_before: str | None = None
    """Time before which no pod is created: the back-off after failures."""
    stopped: Stopped | None = None
    """Set if the last launch is over and the restart policies allow no other."""
    pod: str | None = None
    """The one pod of this launch, set once: only the pod that is named here runs anything."""
    phase: Literal["Pending", "Starting", "Running", "Stopped", "Failed"] = "Pending"
    """How its pod is."""
    message: str = ""
    """Why it does not run, or what its pod says."""
    runtime: RuntimeStatus | None = None
    """Written by the pod."""
    observed_generation: int = 0
    """metadata.generation of the spec that this status is about."""
    conditions: list[Condition] = []
    """Ready: its pod is. ShardsRunning: False while a shard's query fails. RecordsLost: retention
    deleted records before they were read. PodCreated: False while the API server refuses its pod.
    QueryShared: False while it runs a query per shard though its stage could share one.
    JobFound and Accepted are there once it had no Job, or could not be read."""


PROCESSING_ELEMENT = CustomKind(
    kind="ProcessingElement",
    plural="processingelements",
    short_names=["pe"],
    spec=ProcessingElementSpec,
    status=ProcessingElementStatus,
    selectable=[".status.pod"],
    rules=[
        CelRule(
            rule="self.job == oldSelf.job && self.peId == oldSelf.peId",
            message="job and peId can't change: names are made of them",
        )
    ],
    columns=[
        PrinterColumn(name="Stage", type="string", json_path=".spec.stageName"),
        PrinterColumn(name="Channel", type="integer", json_path=".spec.channel"),
        PrinterColumn(name="Shards", type="string", json_path=".spec.shards"),
        PrinterColumn(name="Phase", type="string", json_path=".status.phase"),
        PrinterColumn(name="Launches", type="integer", json_path=".status.launchCount"),
        PrinterColumn(name="Message", type="string", json_path=".status.message", priority=1),
        PrinterColumn(name="Age", type="date", json_path=".metadata.creationTimestamp"),
    ],
)
