"""ParallelRegion: the width of one parallel region, with a scale subresource."""

from typing import Annotated, Literal

from pydantic import Field

from streamgraft_common.adl import Autoscaling
from streamgraft_common.resources.base import (
    CelRule,
    Condition,
    CustomKind,
    JobName,
    Model,
    PrinterColumn,
    RegionName,
    Scale,
)

DEFAULT_DEADLINE_SECONDS = 300
"""For new channels to become ready: images are pulled and drivers started meanwhile."""


Strategy = Literal["handover", "savepoint"]


class RegionStage(Model):
    """One PE of a channel."""

    topics: Annotated[list[Annotated[str, Field(max_length=249)]], Field(max_length=64)]
    """Topics that it reads; each has a partition per key group."""
    weight: Annotated[float, Field(ge=0)] = 1.0
    """What it counts in the signal utilization."""
    real_time: bool = False
    """Whether records flow one by one; nobody knows then how busy each of its shards is."""


class ParallelRegionSpec(Model):
    """The wanted width."""

    job: JobName
    """Job that the region belongs to."""
    region: RegionName
    """Its name in the application."""
    width: Annotated[
        int, Field(ge=0, description="Channels wanted; 1 to maxWidth. 0: the region sleeps.")
    ]
    max_width: Annotated[int, Field(ge=1, le=1024, description="Key groups of the region.")]
    key: Annotated[list[Annotated[str, Field(max_length=253)]], Field(max_length=16)]
    """Columns by which rows are spread over key groups."""
    change_deadline_seconds: Annotated[int, Field(ge=1)] = DEFAULT_DEADLINE_SECONDS
    """Time in which new channels must be ready, and then again moved shards must run, or a width
    change is rolled back."""
    strategy: Strategy = "handover"
    """How the width changes. handover: only shards that move stop, each for itself, once the new
    channels are warm. savepoint: the region stops, a savepoint of it is written, and it starts
    again at the new width."""
    autoscaling: Autoscaling | None = None
    """What the application asks of an autoscaler. Default: nothing."""
    upstream: Annotated[list[RegionName], Field(max_length=1024)] = []
    """Regions of the job whose output reaches it, by their names in the application."""
    other_inputs: bool = False
    """Whether sources and imports reach it as well, past those regions."""
    stages: Annotated[list[RegionStage], Field(max_length=1024)] = []
    """What its channels are made of, in their order. All of it must be measured before a signal has
    a value."""

    @property
    def may_sleep(self) -> bool:
        """Whether its width may be 0."""
        return self.autoscaling is not None and self.autoscaling.min_width == 0


class WidthChange(Model):
    """One width change, finished or under way. Times RFC 3339, durations seconds."""

    from_width: int
    """Width that served before."""
    to_width: int
    """Width that was wanted; of a change that was divided, the width that came first."""
    epoch: int
    """Epoch of its assignment."""
    requested_at: str
    """When the operator saw the wanted width."""
    since: str | None = None
    """When the first of its new channels was made, if that was before: the change goes on from one
    that was divided, or from another wanted width."""
    decided_at: str | None = None
    """When all new channels were ready and shards began to move."""
    serving_at: str | None = None
    """When every moved shard had committed a batch under its new owner."""
    finished_at: str | None = None
    """When the channels that are no longer needed were gone."""
    moved_shards: list[int] = []
    """Shards that got another owner."""
    affected_shards: int = 0
    """How many shards stand still for it: those that get another owner and, if a stage has one
    query per channel, those that stay in a channel that gives or takes some."""
    pause_seconds_max: float | None = None
    """Longest pause of a moved shard: last batch of the old owner → first batch of the new one."""
    unclean_releases: int = 0
    """Moved shards whose last batch was cut off."""
    savepoint: str | None = None
    """Savepoint that is written before shards move; with strategy savepoint."""
    rollback: bool = False
    """Whether it takes back the change before it."""
    failure: str | None = None
    """Why it was rolled back."""

    @property
    def began_at(self) -> str:
        """When it began to cost something: with its first new channel, or when it was wanted."""
        return self.since or self.requested_at


class AvoidedWidth(Model):
    """A width that was rolled back, and is not tried again for a while."""

    width: int
    """The width."""
    failures: int
    """How often in a row it failed."""
    until: str
    """When it is tried again, if it is still wanted."""
    reason: str
    """Why it failed last."""


class ParallelRegionStatus(Model):
    """The width that serves."""

    width: int = 0
    """Channels that own shards."""
    selector: str = ""
    """Label selector of one pod per channel, for autoscalers."""
    epoch: int = 0
    """Counts assignments of shards to channels."""
    assignment: dict[str, int] = {}
    """Shard → channel, as decided for `epoch`."""
    observed_generation: int = 0
    """metadata.generation of the spec that this status is about."""
    avoided: list[AvoidedWidth] = []
    """Widths that failed and have not served since."""
    changes: list[WidthChange] = []
    """The last changes, newest last."""
    conditions: list[Condition] = []
    """Ready; Resizing (True while shards are on their way); Asleep, where the width may be 0.
    JobFound and Accepted are there once it had no Job, or could not be read."""

    @property
    def asleep(self) -> bool:
        """Whether it has no channels."""
        return self.epoch > 0 and self.width == 0


PARALLEL_REGION = CustomKind(
    kind="ParallelRegion",
    plural="parallelregions",
    short_names=["pr", "region"],
    spec=ParallelRegionSpec,
    status=ParallelRegionStatus,
    scale=Scale(
        spec_replicas_path=".spec.width",
        status_replicas_path=".status.width",
        label_selector_path=".status.selector",
    ),
    rules=[
        CelRule(
            rule="self.width <= self.maxWidth",
            message="width must not exceed maxWidth: choose a width from 1 to maxWidth",
        ),
        CelRule(
            rule="self.width > 0 || (has(self.autoscaling) && has(self.autoscaling.minWidth)"
            " && self.autoscaling.minWidth == 0)",
            message="width 0 is for regions whose autoscaling has min_width 0: choose a width from"
            " 1 to maxWidth, or set min_width=0 in the application",
        ),
        CelRule(
            rule="!has(self.autoscaling) || !has(self.autoscaling.minWidth)"
            " || self.autoscaling.minWidth > 0 || !has(self.autoscaling.metric)"
            " || self.autoscaling.metric == 'demand'",
            message="minWidth 0 needs metric demand: without pods no other has a value",
        ),
        CelRule(
            rule="self.maxWidth == oldSelf.maxWidth && self.key == oldSelf.key"
            " && self.job == oldSelf.job && self.region == oldSelf.region",
            message="job, region, key and maxWidth can't change: state is partitioned by them",
        ),
    ],
    columns=[
        PrinterColumn(name="Width", type="integer", json_path=".spec.width"),
        PrinterColumn(name="Serving", type="integer", json_path=".status.width"),
        PrinterColumn(name="Max", type="integer", json_path=".spec.maxWidth"),
        PrinterColumn(
            name="Resizing",
            type="string",
            json_path=".status.conditions[?(@.type=='Resizing')].status",
        ),
        PrinterColumn(name="Age", type="date", json_path=".metadata.creationTimestamp"),
    ],
)
