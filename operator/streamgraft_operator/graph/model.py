"""What the graph pipeline takes and gives: plain values, no behaviour of Kubernetes in them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from streamgraft_common.adl import Placement, Region
from streamgraft_common.content import Content
from streamgraft_common.pe_metadata import BundlePlace, PeMetadata
from streamgraft_common.port_labels import PortLabel
from streamgraft_common.resources import Fusion, ProcessingElementSettings, Resources, Threading


class GraphError(Exception):
    """The application can't be planned; the message tells the user what to change."""


@dataclass(frozen=True)
class JobContext:
    """What the job adds to the application description."""

    namespace: str
    job: str
    job_uid: str
    bundle_digest: str
    bootstrap_servers: str
    bundle: BundlePlace | None = None
    """Where the bundle is, if it is in a ConfigMap."""
    tls: bool = False
    """Whether those brokers speak TLS."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    fusion: Fusion = field(default_factory=Fusion)
    threading: Threading = field(default_factory=Threading)
    settings: ProcessingElementSettings = field(default_factory=ProcessingElementSettings)
    resources: Resources | None = None
    """Resources of the whole job; they are divided among its PEs."""
    savepoint: str | None = None
    """Savepoint that the job starts from."""
    first_widths: Mapping[str, int] = field(default_factory=dict)
    """Widths with which regions begin, where they are not the application's: PEs are counted at
    these widths, so that a later one changes no share."""
    fail_on_data_loss: bool = True
    """Whether shards stop where records of a stream between PEs are gone."""
    create_topics: bool = False
    """Whether source topics are created too if they are missing."""
    source_partitions: Mapping[str, int] = field(default_factory=dict)
    """Partitions of outside topics, as far as they are known."""
    dropped_stages: Mapping[str, int] = field(default_factory=dict)
    """How often edits dropped a stage of this name."""
    repeating: frozenset[str] = frozenset()
    """Operators whose records may come again though the graph does not say so: an earlier one did,
    and what it has sent may not be read yet."""


@dataclass(frozen=True)
class PlannedPe:
    """One PE that should exist."""

    name: str
    pe_id: int
    stage_name: str
    region: str | None
    channel: int | None
    stage: int
    metadata: PeMetadata
    content: Content
    """Hashes of the metadata: as far as the graph decides, they say what a change takes."""
    placement: Placement = field(default_factory=Placement)
    """On which nodes its operators want to run."""
    restartable: bool = True
    """Whether all of its operators may be restarted after a failure."""


@dataclass(frozen=True)
class PlannedRegion:
    """One ParallelRegion resource that should exist."""

    name: str
    """Name of the resource; the region's own is `region.name`."""
    region: Region
    stage_names: tuple[str, ...]
    """Stages of a channel, upstream first."""
    width: int
    """Width for which the topology was planned (initially the region's start width)."""
    first_pe_id: int
    """Id of channel 0, stage 0; the PE of (channel, stage) is this + channel x stages + stage."""
    upstream: tuple[str, ...] = ()
    """Regions whose output reaches it, by their own names."""
    other_inputs: bool = False
    """Whether sources and imports reach it as well."""
    joint: frozenset[int] = frozenset()
    """Stages in which a PE runs one query over all of its shards."""

    @property
    def stages(self) -> int:
        """Number of stages, so of PEs of a channel."""
        return len(self.stage_names)


@dataclass(frozen=True)
class PlannedTopic:
    """One Kafka topic that the job needs."""

    name: str
    partitions: int
    bootstrap_servers: str
    external: bool
    """It belongs to the user: a missing one is created, unless `awaited`, and never deleted."""
    awaited: bool
    """It is a source topic that the user creates."""
    tls: bool = False


@dataclass(frozen=True)
class Topology:
    """All PEs, regions and topics of a job at certain widths."""

    pes: tuple[PlannedPe, ...]
    stages: tuple[PlannedPe, ...]
    """One PE of each stage: that of channel 0 in regions, even in one that has no channels."""
    regions: tuple[PlannedRegion, ...]
    topics: tuple[PlannedTopic, ...]
    port_labels: Mapping[str, PortLabel]
    """For every input that crosses PEs."""
    settings: ProcessingElementSettings = field(default_factory=ProcessingElementSettings)
    """Settings of all PEs, with each one's share of the job's resources."""
    repeating: frozenset[str] = frozenset()
    """Operators whose records may come again, by this graph or an earlier one."""
