"""Job: one application, submitted. What a user writes."""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field, WithJsonSchema

from streamgraft_common.resources import bundle_source
from streamgraft_common.resources.base import (
    NULLABLE,
    CelRule,
    Condition,
    CustomKind,
    Model,
    ObjectName,
    PrinterColumn,
    Quantity,
    Resources,
)
from streamgraft_common.resources.bundle_source import BundleSource
from streamgraft_common.resources.parallel_region import Strategy
from streamgraft_common.resources.settings import ProcessingElementSettings, PullPolicy

WarmPool = Annotated[
    Annotated[int, Field(ge=0)] | Literal["auto"],
    WithJsonSchema(
        {
            "x-kubernetes-int-or-string": True,
            "x-kubernetes-validations": [
                {
                    "rule": "type(self) == int ? self >= 0 : self == 'auto'",
                    "message": "must be a number of pods, or auto",
                }
            ],
        }
    ),
]


class Fusion(Model):
    """How operators are fused into PEs. Different channels of a region never share a PE."""

    type: Literal["automatic", "legacy", "manual"] = "automatic"
    """automatic: connected operators of the same region (or of none) share a PE. legacy: every
    operator has a PE of its own. manual: as many PEs as `peCount` says."""
    pe_count: Annotated[int, Field(ge=1)] | None = None
    """PEs outside of regions plus PEs of one channel of each region; for type manual. Default: as
    many as keep the threads that the application always has busy (its sources, and streams that
    enter a region) within the CPU limit of a PE, or else its task slots."""
    channels: Literal["ChannelExlocation", "ChannelIsolation"] = "ChannelExlocation"
    """ChannelExlocation: `type` is for all operators; those of different channels share no PE.
    ChannelIsolation: the operators of each channel are fused as `automatic` does, and `type` is for
    those outside of regions."""


class Threading(Model):
    """How many Spark task slots a PE gets."""

    model: Literal["automatic", "dedicated", "dynamic", "manual"] = "manual"
    """manual: `processingElement.slots`. dedicated: a slot for each input of the PE. dynamic:
    `threadCount` slots. automatic: as dedicated, but no more than the CPU limit rounded up."""
    thread_count: Annotated[int, Field(ge=1)] | None = None
    """Slots of each PE; for model dynamic."""
    elastic: bool = False
    """For model dynamic: as many slots as the CPU limit, rounded up, but `threadCount` at most."""


class TransportSecurity(Model):
    """Encryption between PEs, Kafka and whoever reads a PE's control port."""

    type: Literal["None", "TLS"] = "None"
    """TLS: version 1.2 or newer."""
    certificate_validity_days: Annotated[int, Field(ge=1, le=36500)] = 30
    """Validity of the control ports' certificates; they are renewed in time."""
    kafka_secret: ObjectName | None = None
    """For type TLS: Secret with the brokers' CA (`ca.crt`), and what they ask for: a client
    certificate (`tls.crt`, `tls.key`), a password (`username`, `password`, `mechanism`), or a token
    (`token-url`, `client-id`, `client-secret`, `scope`). Default: brokers are checked against the
    system's CAs."""

    @property
    def encrypted(self) -> bool:
        """Whether Kafka and control ports speak TLS."""
        return self.type == "TLS"


class RegionOverride(Model):
    """What a region of this job starts with."""

    width: Annotated[int, Field(ge=1)] | None = None
    """First width; later widths are the ParallelRegion's."""
    change_deadline_seconds: Annotated[int, Field(ge=1)] | None = None
    """Time in which new channels must be ready, or a width change is given up. Default: 300."""
    strategy: Strategy | None = None
    """How its width changes. Default: handover."""


class InitialState(Model):
    """The savepoint that a job starts from."""

    name: Annotated[str, Field(max_length=253)]
    """Its name; it is in the job's namespace."""
    allow_dropped_state: bool = False
    """Whether state that no operator of the application takes is left behind."""


class JobSpec(Model):
    """The wanted application."""

    bundle: BundleSource
    """The application."""
    fusion: Fusion = Fusion()
    """How operators are fused into PEs."""
    threading: Threading = Threading()
    """How many task slots a PE gets."""
    regions: Annotated[dict[str, RegionOverride], *NULLABLE] = {}
    """Settings of parallel regions, by name."""
    processing_element: ProcessingElementSettings = ProcessingElementSettings()
    """Settings of all PEs."""
    resources: Resources | None = None
    """Compute resources of the whole job, divided among its PEs (as many as there are at the
    first widths); they win over `processingElement.resources`."""
    parameters: Annotated[dict[str, str], *NULLABLE] = {}
    """Submission-time values; they override the application's defaults."""
    bootstrap_servers: str | None = None
    """Kafka brokers. Default: the operator's."""
    transport_security: TransportSecurity = TransportSecurity()
    """Encryption of what PEs send and serve. Default: the operator's, if the job names no brokers
    of its own."""
    fail_on_data_loss: bool = True
    """Whether a shard stops where Kafka has deleted records of a stream between PEs before they
    were read. False: it goes on with the first that are left, and those that are gone are counted.
    Sources have an option of this name."""
    create_topics: bool = False
    """Whether source topics that do not exist are created. Default: the job waits for them."""
    image: str | None = None
    """Image of the PE runtime. Default: the operator's."""
    image_pull_policy: PullPolicy | None = None
    """When the image is pulled. Default: the operator's for its image, or Kubernetes' own rule."""
    image_pull_secret: str | None = None
    """Secret with the credentials of the image's registry."""
    submission_timeout_seconds: Annotated[int, Field(ge=1)] = 300
    """Time in which all resources must exist, or a first submission is rolled back and repeated."""
    warm_pool: WarmPool | None = None
    """Warm pods, without a PE: a launch adopts one of them, if there is one, instead of starting a
    driver. Each takes the memory of a PE. `auto`: for each region that scales itself, what its
    policy expects it to want within half an hour, or its largest step within the last day if that
    is more; in the first day of a region, until its first growth is over for ten minutes, all that
    it may; at least one channel, and no more than the region may grow. Default: auto if a region
    has autoscaling, else 0."""
    warm_pool_memory: Quantity = "2Gi"
    """What the pods of the warm pool may request together where its size is `auto`. A limit that is
    given alone is requested."""
    savepoint: InitialState | None = None
    """State to start from (`streamgraft savepoint restore` sets it). Default: none."""
    drop_state: Annotated[list[str], Field(max_length=256)] = []
    """Operators whose state an edit of the job may drop (`streamgraft submit --drop-state`)."""
    changed_streams: Annotated[list[str], Field(max_length=256)] = []
    """Streams whose columns an edit of the job may change (`streamgraft submit --change-stream`):
    records on their way have the old ones."""

    def with_image(self, image: str) -> "JobSpec":
        """Return the spec with the image that the operator gives it, where it names none."""
        if self.image or self.processing_element.image:
            return self
        settings = self.processing_element.model_copy(update={"image": image})
        return self.model_copy(update={"processing_element": settings})


class MadeInKafka(Model):
    """What the operator has made for a job in Kafka: this, and nothing else, is deleted with it."""

    cluster_id: str
    """Of the Kafka cluster, as its brokers give it."""
    servers: str = ""
    """The brokers that gave it, as the job or the operator named them."""
    topics: list[str] = []
    """Names of topics, noted before they are made."""
    awaiting: list[str] = []
    """Those topics that were made for an edit, which was not accepted so far: nobody has written
    them."""
    stages: list[str] = []
    """Stages whose consumer groups are the job's."""

    @property
    def written(self) -> frozenset[str]:
        """The topics that may have records."""
        return frozenset(self.topics) - frozenset(self.awaiting)

    def without(self, topics: Iterable[str]) -> "MadeInKafka":
        """Return the same where these topics don't await anything."""
        left = sorted({*self.awaiting} - {*topics})
        return self.model_copy(update={"awaiting": left})


class SourceTopic(Model):
    """A topic that is the user's."""

    topic: str
    """Its name."""
    partitions: Annotated[int, Field(ge=1)]
    """How many it has."""


PoolReason = Literal[
    "Asked", "Expected", "LargestStep", "NewRegion", "OneChannel", "Widest", "NoneFits"
]
PoolHeld = Literal["", "NotCalm", "Behind", "NoRoom", "DriverFailed", "Refused"]


class WarmPoolStatus(Model):
    """How large the warm pool should be, and what keeps it from being so."""

    size: int
    """Pods that should wait."""
    needed: int
    """As many as should if `warmPoolMemory` did not limit them."""
    reason: PoolReason
    """Why so many, of the region that needs most. Asked: the job gives a number. Expected: the
    policy expects that width. LargestStep: of the last day. NewRegion: all that it may grow.
    OneChannel: the least. Widest: it may not grow. NoneFits: its channels need pods that no pool
    has."""
    held: PoolHeld = ""
    """Why what is missing is not started now. NotCalm: a width changes, or not all PEs run, or have
    just begun. Behind: PEs are. NoRoom: a PE finds no node with room. DriverFailed: just now.
    Refused: the API server does not let their pods be created, as with a quota."""


class JobStatus(Model):
    """What became of it."""

    phase: Literal["Pending", "Submitting", "Submitted", "Healthy", "Failed"] = "Pending"
    """Submitting: resources are being made. Submitted: all exist. Healthy: all PEs run."""
    generation_id: int = 0
    """Counts the generations of the job's graph: each edit that changes it makes a new one."""
    observed_generation: int = 0
    """metadata.generation of the spec that this status is about."""
    submitted_generation: int = 0
    """metadata.generation of the last spec for which all resources existed; 0: none yet."""
    restored: bool = False
    """Whether all shards have begun where the savepoint of the spec ends: nothing starts from it
    any more, neither shards that come later, and it may be deleted."""
    bundle_digest: str | None = None
    """sha256 of the bundle that runs."""
    image: str | None = None
    """Image of pods whose settings name none: the operator's as of the last submission."""
    image_generation: int = 0
    """metadata.generation of the spec that this image was chosen for."""
    image_submission: str = ""
    """The annotation streamgraft.io/submitted-at that it was chosen for."""
    made_in_kafka: MadeInKafka | None = None
    """What goes from Kafka with the job; none before the first topics are made."""
    source_topics: list[SourceTopic] = []
    """Topics of which a PE in real-time mode reads all partitions: it has a task slot for each."""
    dropped_stages: dict[str, int] = {}
    """How often edits have dropped a stage: one that comes back begins anew, with a checkpoint of
    its own. With `region ` before the name, a parallel region: its topics are new then."""
    dropped_for: str = ""
    """Hash of the graph for which this was counted last."""
    repeating: list[str] = []
    """Operators that write to other PEs in real time, at least once, or have done so: what reads
    them drops repeats, also after an edit of their delivery."""
    pe_count: int = 0
    """PEs of the job at the present widths."""
    ready_pe_count: int = 0
    """Those of them that run."""
    failed_submissions: int = 0
    """Submissions in a row that were rolled back."""
    warm_pool: WarmPoolStatus | None = None
    """What should wait for the next launches; none if nothing should."""
    message: str = ""
    """What is wrong first of all, or that nothing is."""
    conditions: list[Condition] = []
    """Accepted, ReferencesFound, KafkaAvailable, SourcesAvailable, Submitted, Ready."""

    @property
    def partitions(self) -> dict[str, int]:
        """Partitions of the source topics, by name."""
        return {item.topic: item.partitions for item in self.source_topics}


_FILE_SYSTEM = (
    "(has({spec}.processingElement) && has({spec}.processingElement.checkpointRepository)"
    " && has({spec}.processingElement.checkpointRepository.fileSystem))"
)
"""Rule: whether a job has a volume of its own for its checkpoints."""

JOB = CustomKind(
    kind="Job",
    plural="jobs",
    short_names=["sj"],
    spec=JobSpec,
    status=JobStatus,
    rules=[
        *bundle_source.RULES,
        CelRule(
            rule="has(self.savepoint) == has(oldSelf.savepoint)"
            " && (!has(self.savepoint) || self.savepoint == oldSelf.savepoint)",
            message="savepoint can't change: a job starts from it once, when it is created",
        ),
        CelRule(
            rule=f"{_FILE_SYSTEM.format(spec='self')} == {_FILE_SYSTEM.format(spec='oldSelf')}"
            f" && (!{_FILE_SYSTEM.format(spec='self')}"
            " || self.processingElement.checkpointRepository.fileSystem"
            " == oldSelf.processingElement.checkpointRepository.fileSystem)",
            message="processingElement.checkpointRepository.fileSystem can't change: on another"
            " volume the job would begin anew; take a savepoint, copy it to the other volume,"
            " cancel the job, and start it from the savepoint with that volume",
        ),
        CelRule(
            rule="!has(self.fusion) || !has(self.fusion.peCount)"
            " || (has(self.fusion.type) && self.fusion.type == 'manual')",
            message="fusion.peCount is for type manual only",
        ),
        CelRule(
            rule="!has(self.threading) || (has(self.threading.model) &&"
            " self.threading.model == 'dynamic') == has(self.threading.threadCount)",
            message="threading model dynamic needs threadCount, and no other model takes it",
        ),
        CelRule(
            rule="!has(self.threading) || !has(self.threading.elastic) || !self.threading.elastic"
            " || has(self.threading.threadCount)",
            message="threading.elastic is for model dynamic only",
        ),
        CelRule(
            rule="!has(self.transportSecurity) || !has(self.transportSecurity.kafkaSecret)"
            " || (has(self.transportSecurity.type) && self.transportSecurity.type == 'TLS')",
            message="transportSecurity.kafkaSecret is for type TLS only",
        ),
        CelRule(
            rule="!has(self.processingElement) || !has(self.processingElement.slots)"
            " || !has(self.threading) || !has(self.threading.model)"
            " || self.threading.model == 'manual'",
            message="processingElement.slots is for threading model manual only",
        ),
        CelRule(
            rule="!has(self.processingElement) || !has(self.processingElement.checkpointRepository)"
            " || [has(self.processingElement.checkpointRepository.copies),"
            " has(self.processingElement.checkpointRepository.s3),"
            " has(self.processingElement.checkpointRepository.redis)].filter(x, x).size() <= 1",
            message="checkpointRepository takes one of copies, s3 and redis",
        ),
    ],
    columns=[
        PrinterColumn(name="Phase", type="string", json_path=".status.phase"),
        PrinterColumn(name="PEs", type="integer", json_path=".status.peCount"),
        PrinterColumn(name="Ready", type="integer", json_path=".status.readyPeCount"),
        PrinterColumn(name="Message", type="string", json_path=".status.message", priority=1),
        PrinterColumn(name="Age", type="date", json_path=".metadata.creationTimestamp"),
    ],
)
