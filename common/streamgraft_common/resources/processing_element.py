"""ProcessingElement: one PE of a job. Written by the operator; its pod watches it.

`status.runtime` belongs to the PE's pod, everything else in the status to the operator. Each
patches only its own part, so the two writers never meet.
"""

from typing import Annotated, Literal

from pydantic import Field

from streamgraft_common.resources.base import Condition, Kind, Model, PrinterColumn


class ProcessingElementSpec(Model):
    """The wanted PE."""

    job: str
    pe_id: Annotated[int, Field(ge=0)]
    stage_name: str
    region: str | None = None
    channel: Annotated[int, Field(ge=0)] | None = None
    stage: Annotated[int, Field(ge=0)] = 0
    """Index within the channel."""
    shards: list[int] = []
    """Shards that this PE may run now. Outside of a region: [0]."""
    epoch: Annotated[int, Field(ge=0)] = 0
    """Epoch of the assignment that `shards` belongs to."""


class ShardStatus(Model):
    """One shard, as its owner sees it. Times are RFC 3339 with milliseconds.

    Starting → Running → Stopping → (entry removed: released). An entry that is there means that
    the PE may still write for the shard. Failed: its query failed and is being retried.
    """

    state: Literal["Starting", "Running", "Stopping", "Failed"]
    epoch: int
    started_at: str | None = None
    """When the query was started."""
    first_batch_at: str | None = None
    """When its first batch since then was committed (idle triggers count)."""
    message: str = ""


class Release(Model):
    """The last release of a shard by this PE: clean means at a batch boundary."""

    epoch: int
    """Epoch of the spec that took the shard away."""
    released_at: str
    last_batch_at: str | None = None
    """End of the last batch, or when the stop was asked for if no batch ran then."""
    clean: bool = True


class RuntimeStatus(Model):
    """What the pod says of itself."""

    pod: str = ""
    launch_count: int = 0
    ready: bool = False
    """Warm: session up, plan compiled; it can take shards at once."""
    epoch: int = 0
    """Epoch of the last spec that was fully applied."""
    shards: dict[str, ShardStatus] = {}
    """Shards held, by number."""
    releases: dict[str, Release] = {}
    message: str = ""


class ProcessingElementStatus(Model):
    """The PE that runs."""

    launch_count: int = 0
    """How often a pod of this PE was asked for. Everything that should restart a PE raises it."""
    launch_reason: str = ""
    failure_count: int = 0
    """Launches in a row that ended by themselves."""
    not_before: str | None = None
    """Time before which no pod is created: the back-off after failures."""
    pod: str | None = None
    phase: Literal["Pending", "Starting", "Running", "Stopped", "Failed"] = "Pending"
    message: str = ""
    runtime: RuntimeStatus | None = None
    conditions: list[Condition] = []


PROCESSING_ELEMENT = Kind(
    kind="ProcessingElement",
    plural="processingelements",
    short_names=["pe"],
    spec=ProcessingElementSpec,
    status=ProcessingElementStatus,
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
