"""The application description (ADL): what a bundle says about its graph.

JSON in the bundle's `adl.json`. Written by `streamgraft build`, read by the operator (which never
runs user code) and by the PE runtime. Stream schemas are Spark's JSON form of a StructType.
"""

import re
from typing import Annotated, Any, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    field_validator,
    model_validator,
)

from streamgraft_common.adl_model import AdlModel, Name, PartName, Token
from streamgraft_common.declared_objects import HostPoolDeclaration, ServiceDeclaration
from streamgraft_common.encodings import Encoding
from streamgraft_common.shared_streams.declarations import ExportDeclaration, ImportDeclaration

FORMAT = 1
"""Version of the ADL format that this release writes, and the newest that it reads."""


def _topic_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", text) or text in (".", ".."):
        raise ValueError("a topic's name has 1 to 249 letters, digits, dots, hyphens, underscores")
    return text


TopicName = Annotated[str, AfterValidator(_topic_name)]
"""A name that Kafka takes."""


class KafkaEndpoint(AdlModel):
    """An outside Kafka topic that a source reads or a sink writes."""

    topic: TopicName
    format: Literal["json", "raw", "avro", "protobuf"] = "json"
    """json: the value is one JSON object with the stream's fields. avro, protobuf: a record or
    message with them. raw: the stream has the Kafka columns themselves (key, value: binary; topic,
    partition, offset, timestamp, headers)."""
    encoding: Encoding | None = None
    """Of avro and protobuf."""
    key: list[str] = []
    """Sinks: columns whose values make the record key (JSON array text; one column: its text)."""
    partitions: int = Field(default=1, ge=1)
    """Sinks: partitions with which a missing topic is created."""
    starting_offsets: Literal["earliest", "latest"] = "earliest"
    bootstrap_servers: str | None = None
    """None: the job's own brokers."""
    options: dict[str, str] = {}
    """Further options of Spark's Kafka source or sink."""
    malformed: Literal["dead_letter", "skip", "fail"] = "dead_letter"
    """Sources, but for format raw: what becomes of a record that is none of the schema. It is
    written to the job's topic for dead letters, left out, or its query fails."""
    required: list[str] | None = None
    """Sources, but for format raw: columns without which a record is none of the schema. Absent
    without any, as in bundles of former releases."""
    delivery: Literal["exactly_once", "at_least_once"] = "exactly_once"
    """Sinks: whether a batch that runs again after a crash writes its records again."""

    @property
    def guarded(self) -> bool:
        """Whether its brokers, others than the job's, ask for what only its options have: keys and
        files of its PE's pod."""
        protocol = self.options.get("kafka.security.protocol", "PLAINTEXT")
        return self.bootstrap_servers is not None and protocol.upper() != "PLAINTEXT"

    @model_validator(mode="after")
    def _has_an_encoding(self) -> Self:
        if (self.encoding.kind if self.encoding else None) != (
            self.format if self.format in ("avro", "protobuf") else None
        ):
            raise ValueError("format avro or protobuf needs such an encoding, and no other has one")
        return self


class SplitOutput(AdlModel):
    """One output of a split."""

    stream: Name
    condition: str
    """SQL; the output has the rows for which it is true."""


class Placement(AdlModel):
    """On which nodes an operator's PE runs (cloud native Streams, section 6.2).

    Tokens are the job's own: PEs that name the same one are placed with, or apart from, each other.
    Inside a region they hold for all channels, so an `exlocate` token spreads the channels.
    """

    host: Annotated[str, Field(min_length=1, max_length=253)] | None = None
    """Name of the node."""
    host_pool: Annotated[str, Field(min_length=1, max_length=63)] | None = None
    """Name of the HostPool, in the job's namespace, that the node belongs to."""
    colocate: list[Token] = []
    """Runs on one node with all PEs that have one of these tokens."""
    exlocate: list[Token] = []
    """Runs on another node than each PE that has one of these tokens."""
    isolate: bool = False
    """Runs on a node that no other PE of the job runs on."""

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if self.host and self.host_pool:
            raise ValueError("a placement has a host or a host_pool, not both")
        return self


class StateColumn(AdlModel):
    """A column of a table of state."""

    name: str
    """Spark's name of it."""
    type: str
    """Spark's short form of it, such as bigint."""

    def __str__(self) -> str:
        return f"{self.name} {self.type}"


class StateTable(AdlModel):
    """A table of an operator's state, as Spark notes it in a checkpoint."""

    operator: str
    """Spark's name of the part of the query, such as stateStoreSave."""
    name: str = ""
    """Of those that have several."""
    key: list[StateColumn]
    """Columns that a row is found by."""
    value: list[StateColumn]
    """Columns that are kept for each key."""


class Operator(AdlModel):
    """One operator of the graph."""

    name: Name
    kind: Literal[
        "kafka-source", "source", "function", "split", "sink", "kafka-sink", "export", "import"
    ]
    """`source`: a function of the SparkSession; `function`: DataFrames in, one DataFrame out;
    `sink`: a function of a batch's DataFrame and the batch id, Spark's foreachBatch."""
    inputs: list[Name] = []
    outputs: list[Name] = []
    region: Name | None = None
    kafka: KafkaEndpoint | None = None
    """Of kinds `kafka-source` and `kafka-sink`."""
    split: list[SplitOutput] = []
    """Outputs of kind `split`."""
    exported: ExportDeclaration | None = None
    """Of kind `export`: a stream for other jobs."""
    imported: ImportDeclaration | None = None
    """Of kind `import`: a stream of other jobs."""
    function: str | None = None
    """Attribute of the operator's function within the application object (its own name)."""
    code: str | None = None
    """Hash of the function's code and of all in the bundle that it may use; None: not told."""
    stateful: bool = False
    """True if the analysis found a stateful operator (aggregate, join of streams,
    deduplication…)."""
    state: list[StateTable] | None = None
    """What its state consists of; None if it has none, or Spark could not say."""
    parameters: dict[str, str] | None = None
    """Submission-time values that its function read when the build called it: what the build found
    out of it holds for these. None: not told."""
    joint_state: bool = False
    """True if the state is of a kind that several shards may keep in one query: it does not go by
    event time, and nothing happens to it without records."""
    event_time: bool = False
    """True if it sets a watermark: Spark has one for the whole query, whatever shards are in it."""
    output_mode: Literal["append", "update"] = "append"
    restartable: bool = True
    """Whether a PE with this operator may be restarted after a failure."""
    real_time: bool = False
    """Whether a PE with this operator runs in Spark's real-time mode."""
    delivery: Literal["exactly_once", "at_least_once"] = "exactly_once"
    """In real-time mode: whether records wait some milliseconds for a transaction to end."""
    fusion_group: int = 0
    """Operators of different groups never share a PE: Spark could not run them in one plan."""
    placement: Placement = Placement()
    """On which nodes it runs; operators whose placements exclude each other share no PE."""
    commits: bool = False
    """Sinks: whether functions of it are called when a cut is prepared, and when it is complete."""
    location: str = ""
    """`file:line` where the user wrote it."""


class Stream(AdlModel):
    """One stream: its Spark schema (JSON form of StructType) and the operator that makes it."""

    name: Name
    producer: Name
    stream_schema: dict[str, Any] = Field(alias="schema")
    partitions: int = Field(default=1, ge=1)
    """Partitions of its topic, where it crosses PEs outside of a region."""


Weekday = Literal["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
TimeZone = Annotated[
    str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}$", max_length=64)
]
TimeOfDay = Annotated[str, Field(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")]


class Period(AdlModel):
    """A time of day on some days of the week, every week."""

    start: TimeOfDay
    """Begin, HH:MM."""
    end: TimeOfDay
    """End, HH:MM. At or before the start: on the next day."""
    days: list[Weekday] = Field(default=[], max_length=7)
    """Days on which it starts. None: every day."""
    time_zone: TimeZone = "UTC"
    """Name in the time zone database, like Europe/Berlin."""
    min_width: int | None = Field(default=None, ge=1)
    """Least width in this time. None: no width change in this time."""

    @field_validator("time_zone")
    @classmethod
    def _known_zone(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:  # OSError: it is a folder
            raise ValueError(f"{name!r} is no time zone, like Europe/Berlin") from error
        return name


ChangeCost = Annotated[
    Annotated[float, Field(ge=0, allow_inf_nan=False)] | None,
    BeforeValidator(lambda value: None if value == "auto" else value),
]


class Autoscaling(AdlModel):
    """What a region asks of the autoscaler. Times are seconds."""

    mode: Literal["scale", "advise"] = "scale"
    """scale: a HorizontalPodAutoscaler is generated. advise: it only tells what it would do."""

    min_width: int = Field(default=1, ge=0)
    """Least width. 0: without records the region sleeps, and has no pods."""
    max_width: int | None = Field(default=None, ge=1)
    """Largest width. Default: the region's."""
    metric: Literal["demand", "lag-utilization"] = "demand"
    """The signal that decides."""
    target_utilization: float = Field(default=0.8, gt=0, le=1)
    """Busy share of a channel that is aimed at."""
    utilization_weights: dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]] = Field(
        default={}, max_length=1024
    )
    """What an operator's PEs count in the signal utilization, which is their mean. A PE of several
    operators has the largest of their weights. Default: 1 each."""
    catch_up_seconds: float = Field(default=60.0, gt=0)
    """Time in which a backlog should be gone."""
    lag_threshold: float = Field(default=1000.0, ge=0)
    """Records of lag below which it is no reason to grow."""
    latency_seconds: float | None = Field(default=None, gt=0)
    """Longest time that records may wait; a backlog is worked off in this time."""
    max_cost_per_hour: float | None = Field(default=None, gt=0)
    """What all channels together may cost in an hour."""
    channel_cost_per_hour: float | None = Field(default=None, gt=0)
    """What one channel costs in an hour."""
    headroom: float = Field(default=0.25, ge=0, le=10)
    """Share by which the load may grow to the target utilization once a width was chosen."""
    change_cost_seconds: ChangeCost = None
    """What a width change must save: time of all channels at the largest width of the last day.
    Default (in applications also "auto"): what the region's own changes have cost."""
    overshoot: float = Field(default=1.0, gt=0)
    """Multiplier of the lag's change in the signal of lag-utilization."""
    forecast: bool = True
    """Choose widths for the day to come, as earlier days show it, while that proves right."""
    scale_up_seconds: int = Field(default=30, ge=0, le=3600)
    """How long more channels must be needed before the width grows."""
    scale_down_seconds: int | None = Field(default=None, ge=0, le=3600)
    """How long fewer channels must do before the width shrinks. Default: 120 with metric demand,
    which shrinks only where that pays, otherwise 300."""
    periods: list[Period] = Field(default=[], max_length=32)
    """Times with a least width of their own, or without width changes."""

    @model_validator(mode="after")
    def _wakes_up(self) -> Self:
        # Only what no release has accepted: stored objects and bundles are read by this, too.
        if self.min_width == 0 and self.metric != "demand":
            raise ValueError("min_width 0 needs metric demand: without pods no other has a value")
        return self

    @property
    def shrinks_after_seconds(self) -> int:
        """How long fewer channels must do before the width shrinks."""
        if self.scale_down_seconds is not None:
            return self.scale_down_seconds
        return 120 if self.metric == "demand" else 300

    def largest_width(self, region_max_width: int) -> int:
        """Return the largest width that the limits and the cost allow in a region."""
        limits = [region_max_width, self.max_width or region_max_width]
        if self.max_cost_per_hour is not None and self.channel_cost_per_hour is not None:
            affordable = self.max_cost_per_hour / self.channel_cost_per_hour
            limits.append(int(min(affordable, region_max_width)))
        return max(min(limits), 1)

    def smallest_width(self, region_max_width: int) -> int:
        """Return the least width, at most the largest."""
        return min(self.min_width, self.largest_width(region_max_width))


class Region(AdlModel):
    """A parallel region."""

    name: PartName
    key: list[str] = Field(min_length=1)
    """Columns by which its input streams are divided into key groups."""
    width: int = Field(default=1, ge=1)
    max_width: int = Field(ge=1, le=1024)
    """Channels at most, and so the number of key groups."""
    autoscaling: Autoscaling | None = None
    placement: Placement = Placement()
    """Of the PEs of all channels, as far as their operators ask for no other host or pool."""
    location: str = ""


class ConsistentRegion(AdlModel):
    """Operators that are checkpointed together: no record is between two of them in a cut."""

    name: PartName
    operators: list[Name] = Field(min_length=1)
    """All that are in it: from its start to its end."""
    trigger: Literal["periodic", "operatorDriven"] = "periodic"
    """Who begins a cut: the clock, or whoever asks for one."""
    period_seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Time between cuts; for trigger periodic."""
    drain_timeout_seconds: float = Field(default=180.0, gt=0, allow_inf_nan=False)
    """Time in which all operators must have been drained and copied."""
    retained_cuts: int = Field(default=3, ge=1, le=100)
    """Cuts that are kept."""
    repository: bool = True
    """Whether cuts are kept in the job's repository, too."""
    roll_back_on: Literal["damage", "failure", "never"] = "never"
    """What has the region go back to its last cut by itself."""
    max_rollbacks: int = Field(default=5, ge=1, le=100)
    """So many times in a row, without a cut between them."""
    location: str = ""

    @model_validator(mode="after")
    def _has_a_clock(self) -> Self:
        if (self.trigger == "periodic") != (self.period_seconds is not None):
            raise ValueError("periodic needs period_seconds, and operatorDriven takes none")
        return self


class PeDefaults(AdlModel):
    """Settings of the application for all its PEs; the Job's own settings win."""

    trigger_seconds: float | None = None
    spark_conf: dict[str, str] = {}


class Adl(AdlModel):
    """A whole application."""

    format: int = FORMAT
    name: Name
    built_by: str
    """Version of Streamgraft that built the bundle."""
    module: str
    """Module that holds the application object, importable from the bundle's root."""
    application: str
    """Name of the application object in that module."""
    operators: list[Operator]
    streams: list[Stream]
    regions: list[Region] = []
    consistent_regions: list[ConsistentRegion] = []
    services: list[ServiceDeclaration] = []
    host_pools: list[HostPoolDeclaration] = []
    parameters: dict[str, str] = {}
    """Submission-time values with their defaults."""
    fixed_code: list[str] = []
    """Files in the bundle that a running process can't load in another version."""
    pe: PeDefaults = PeDefaults()

    @model_validator(mode="after")
    def _services_have_operators(self) -> Self:
        unknown = {item.operator for item in self.services} - {op.name for op in self.operators}
        if unknown:
            raise ValueError(f"services name operators that are not there: {sorted(unknown)}")
        return self
