"""Settings of PEs that a Job gives to all of its PEs, and a ProcessingElement may override.

None means: not set here, so what stands further out holds (PE, then Job, then our default).
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from streamgraft_common.resources.base import Model, ObjectName, Resources
from streamgraft_common.resources.repositories import RedisRepository, S3Repository

PullPolicy = Literal["Always", "IfNotPresent", "Never"]
TraceLevel = Literal["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "OFF"]


class VolumeClaim(Model):
    """A part of a PersistentVolumeClaim in the job's namespace."""

    name: ObjectName
    """Name of the claim."""
    sub_path: Annotated[str, Field(pattern=r"^[^/].*$")] | None = None
    """Folder within the claim. Default: all of it."""


class FileSystemRepository(Model):
    """Checkpoints in files, on a volume that all PEs of the job can mount at the same time."""

    path: Annotated[str, Field(pattern=r"^/.+")] = "/var/lib/streamgraft/checkpoints"
    """Where PEs mount it."""
    volume_claim: VolumeClaim
    """The volume; it must be ReadWriteMany unless all PEs share a node."""


class CheckpointRepository(Model):
    """Where checkpoints go, and how state is kept between them."""

    file_system: FileSystemRepository | None = None
    """Default: the volume that the operator was started with."""
    state_store: Literal["Memory", "RocksDB"] = "Memory"
    """Spark's state store: on the heap, or RocksDB beside it for state larger than the heap."""
    copies: FileSystemRepository | None = None
    """Another volume that savepoints and cuts are kept on as well. Of `copies`, `s3` and `redis`
    one at most."""
    s3: S3Repository | None = None
    """A bucket that savepoints and cuts are kept in as well."""
    redis: RedisRepository | None = None
    """Servers that savepoints and cuts are kept on as well."""

    @property
    def keeps_copies(self) -> bool:
        """Whether savepoints and cuts are kept outside of the volume of the checkpoints, too."""
        return bool(self.copies or self.s3 or self.redis)


class PodSettings(Model):
    """What decides how the pod of a PE looks and how long it lives."""

    image: str | None = None
    """Image of the PE runtime. Default: the operator's."""
    image_pull_policy: PullPolicy | None = None
    """When the image is pulled. Default: the operator's for its image, or Kubernetes' own rule."""
    image_pull_secret: ObjectName | None = None
    """Secret with the credentials of the image's registry."""
    build_type: Literal["release", "debug"] | None = None
    """debug: Python's fault handler and the JVM's assertions and heap dumps. Default: release."""
    allow_ptrace: bool | None = None
    """Adds the capability SYS_PTRACE, so that a debugger can attach. Default: false."""
    run_with_profilers: bool | None = None
    """Records all of the PE's life with py-spy and Java Flight Recorder, into the data path's
    folder `profiles`. Implies buildType debug. Default: false."""
    app_trace_level: TraceLevel | None = None
    """Level of the application's own loggers; takes effect while it runs. Default: INFO."""
    runtime_trace_level: TraceLevel | None = None
    """Level of the runtime's loggers and of Spark's; takes effect while it runs. Default: INFO,
    and WARN for Spark."""
    restart_failed_pod: bool | None = None
    """Whether a pod that failed is followed by another. Default: if all operators of the PE are
    restartable."""
    restart_completed_pod: bool | None = None
    """Whether a pod that ended with exit code 0 is followed by another. Default: true."""
    restart_deleted_pod: bool | None = None
    """Whether a pod that was deleted is followed by another; decides for every pod that is being
    deleted where the other two say no. Default: true."""
    delete_failed_pod: bool | None = None
    """Whether a failed pod is deleted; otherwise the last three stay. Default: true."""
    initial_probe_delay_seconds: Annotated[int, Field(ge=0)] | None = None
    """Delay of the liveness probe. Default: 60."""
    probe_interval_seconds: Annotated[int, Field(ge=1)] | None = None
    """Interval of the liveness probe. Default: 10."""
    probe_failure_threshold: Annotated[int, Field(ge=1)] | None = None
    """Failures of the liveness probe in a row after which the pod is killed. Default: 6."""
    data_path: Annotated[str, Field(pattern=r"^/.+")] | None = None
    """The PE's data folder, in STREAMGRAFT_DATA_PATH. Default: /var/lib/streamgraft/data."""
    data_volume_claim: VolumeClaim | None = None
    """Volume of the data folder. Default: an empty one for each pod."""
    app_properties_secret: ObjectName | None = None
    """Secret whose keys the application reads with `streamgraft.properties()`."""
    restricted_properties_secret: ObjectName | None = None
    """Secret whose keys are Spark settings that must not be seen, like credentials of a store."""
    resources: Resources | None = None
    """Compute resources of each PE. Default: requests of 100m cpu and 512Mi memory."""
    heap_mb: Annotated[int, Field(ge=128)] | None = None
    """Largest Java heap of the driver, in MiB. Default: 400."""
    java_options: str | None = None
    """Further options of the driver's JVM, as in a shell."""
    env: dict[str, str] | None = None
    """Further environment variables; those of the runtime can't be changed."""
    pod_template: Annotated[
        dict[str, Any] | None,
        Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True}),
    ] = None
    """A PodTemplateSpec (metadata, spec) into which the pod is written; the container is `pe`.
    Lists of named things are merged by name; what the operator sets wins."""

    def over(self, inherited: "PodSettings") -> "PodSettings":
        """Return these settings with `inherited` wherever nothing is set."""
        given = {name: getattr(self, name) for name in self.model_fields_set}
        own = {name: value for name, value in given.items() if value is not None}
        return inherited.model_copy(update=own) if own else inherited


class ProcessingElementSettings(PodSettings):
    """Settings for all PEs of a job."""

    trigger_seconds: Annotated[float, Field(gt=0)] | None = None
    """Micro-batch trigger interval. Default: the application's own, else 1 s."""
    slots: Annotated[int, Field(ge=1)] | None = None
    """Spark task slots of a PE (`local[slots]`) with threading model manual. Default: 1, and in
    real-time mode one for each partition that is read."""
    spark_conf: dict[str, str] = {}
    """Spark settings; they override the application's and ours."""
    checkpoint_repository: CheckpointRepository | None = None
    """Where the shards of all PEs keep their checkpoints."""

    def for_pods(self) -> PodSettings:
        """Return the part that a ProcessingElement carries."""
        given = self.model_fields_set & PodSettings.model_fields.keys()
        return PodSettings(**{name: getattr(self, name) for name in given})
