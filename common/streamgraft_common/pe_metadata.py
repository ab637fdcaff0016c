"""Graph metadata of one PE: what its ConfigMap holds and the PE runtime reads at start.

It depends on the graph, never on the width of a region: a width change leaves it identical, byte
for byte, so the pods of all neighbours stay. What does change (shards, epoch) is in the
ProcessingElement resource, which the PE watches.
"""

from pydantic import ConfigDict, Field

from streamgraft_common.adl_model import AdlModel

STATE_STORE_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
"""Spark setting: where queries keep their state."""
HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
"""Spark's default: state is in memory, and in files."""
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


class Metadata(AdlModel):
    """Pods of an earlier release pass over fields that they don't know.

    A field that a release adds has a default that means what was before, and it never changes: what
    is at its default is neither written nor compared, so a new release changes no PE.
    """

    model_config = ConfigDict(extra="ignore")

    def to_wire(self) -> str:
        """Return the JSON that the ConfigMap holds."""
        return self.model_dump_json(by_alias=True, exclude_defaults=True)


class OwnTopic(Metadata):
    """A topic of the job's own that is no stream's."""

    topic: str
    bootstrap_servers: str
    tls: bool = False


class BundlePlace(Metadata):
    """A key of a ConfigMap in the job's namespace."""

    config_map: str
    key: str


class InputPort(Metadata):
    """A stream that enters the PE from a Kafka topic."""

    port: int
    stream: str
    topic: str
    partitions: int | None
    """None for an outside topic: the PE then reads whatever partitions it has."""
    bootstrap_servers: str
    tls: bool = False
    """Whether these brokers speak TLS: the job's own, if it has transport security."""
    external: bool = False
    """True: read as the application's KafkaEndpoint says, by operator `operator`."""
    operator: str
    """The kafka-source operator (external) or the first consumer of the stream in the PE."""
    imported: bool = False
    """Whether it is an import: `topic` only names it, those that it reads are in the PE's spec."""
    repeats: bool = False
    """Whether records may come again, and say which they are: who sends them does so in real time,
    at least once."""
    may_lose: bool = False
    """Whether a stream between PEs is read on behind records that Kafka has deleted before; of a
    source its options say it."""
    dead_letters: OwnTopic | None = None
    """Where malformed records of an outside topic go, at the same brokers; None if its source does
    else with them."""


class OutputPort(Metadata):
    """A stream that leaves the PE for a Kafka topic."""

    port: int
    stream: str
    topic: str
    partitions: int | None
    bootstrap_servers: str
    tls: bool = False
    """Whether these brokers speak TLS: the job's own, if it has transport security."""
    key: list[str] = []
    """Columns hashed into the record key (murmur2 partitioner); empty: no key."""
    keep_partition: bool = False
    """Whether a record goes to the partition whose number is the shard's, so that key groups stay
    together inside and behind a region."""
    external: bool = False
    operator: str
    """The kafka-sink operator (external) or the operator that makes the stream."""


class PeMetadata(Metadata):
    """Everything a PE needs to know about its place in the graph."""

    namespace: str
    job: str
    pe_id: int
    stage_name: str
    """Names the checkpoints and the consumer group: that of the stage's first operator with state,
    or else of its first operator. The same for all channels of a region."""
    region: str | None = None
    channel: int | None = None
    shard_count: int = Field(default=1, ge=1)
    """Shards of the stage: the region's max width, or 1 outside of regions. Shard i reads
    partition i of each input inside a region, all partitions outside."""
    operators: list[str]
    """Operators fused into this PE, upstream first."""
    inputs: list[InputPort]
    outputs: list[OutputPort]
    rehearsal: OwnTopic | None = None
    """Has two partitions; drivers that wait in a pool send records of no meaning from one to the
    other: code that has run is quick. None if no port is at the job's own brokers."""
    checkpoint_path: str
    """Below the checkpoint root (names.checkpoint_path). A shard adds `/<number>`."""
    savepoint: str | None = None
    """Savepoint, below the checkpoint root, from which shards without a checkpoint start."""
    parameters: dict[str, str] = {}
    trigger_seconds: float
    real_time: bool = False
    """Spark's real-time mode: records flow through long batches one by one."""
    slots: int = Field(default=1, ge=1)
    """Spark task slots (`local[slots]`)."""
    spark_conf: dict[str, str] = {}
    bundle_digest: str
    """sha256 of the bundle that this was written with; later ones may have the same code for it."""
    code: str = ""
    """Hash of the code that the PE runs (streamgraft_common.code)."""
    code_in_place: bool = True
    """Whether a running driver can take up other code."""
    bundle: BundlePlace | None = None
    """Where a running driver finds it; None: in the file that its pod was started with."""
