"""Job: one application, submitted. What a user writes."""

from typing import Annotated, Literal

from pydantic import Field

from streamgraft_common.resources.base import (
    CelRule,
    Condition,
    Kind,
    Model,
    PrinterColumn,
    Resources,
)


class ConfigMapBundle(Model):
    """A bundle in a ConfigMap of the job's namespace (binaryData), 1 MiB at most."""

    name: str
    key: str = "bundle.zip"


class Bundle(Model):
    """Where the bundle is: exactly one of `configMap` and `file`."""

    config_map: ConfigMapBundle | None = None
    file: str | None = None
    """Path that the operator and the PEs both see (shared volume)."""


class Fusion(Model):
    """How operators are fused into PEs.

    automatic: all operators that are connected and in the same region (or in none) share a PE.
    legacy: every operator gets a PE of its own.
    """

    type: Literal["automatic", "legacy"] = "automatic"


class RegionOverride(Model):
    """The width with which a region starts; later widths are the ParallelRegion's."""

    width: Annotated[int, Field(ge=1)] | None = None


class ProcessingElementSettings(Model):
    """Settings for the PEs of the job."""

    trigger_seconds: Annotated[float, Field(gt=0)] | None = None
    """Micro-batch trigger interval. None: the application's own, else 1 s."""
    slots: Annotated[int, Field(ge=1)] = 1
    """Spark task slots of a PE (`local[slots]`)."""
    heap_mb: Annotated[int, Field(ge=128)] = 400
    """Largest Java heap of the driver."""
    spark_conf: dict[str, str] = {}
    java_options: str = ""
    env: dict[str, str] = {}
    resources: Resources | None = None


class JobSpec(Model):
    """The wanted application."""

    bundle: Bundle
    fusion: Fusion = Fusion()
    regions: dict[str, RegionOverride] = {}
    processing_element: ProcessingElementSettings = ProcessingElementSettings()
    parameters: dict[str, str] = {}
    """Submission-time values; they override the application's defaults."""
    bootstrap_servers: str | None = None
    """Kafka brokers; None: the operator's default."""
    image: str | None = None
    """Image of the PE runtime; None: the operator's default."""
    submission_timeout_seconds: Annotated[int, Field(ge=1)] = 300


class JobStatus(Model):
    """What became of it."""

    phase: Literal["Pending", "Submitting", "Submitted", "Healthy", "Failed"] = "Pending"
    generation_id: int = 0
    """Counts the generations of the job's graph; a submission or a width change makes a new one."""
    observed_generation: int = 0
    bundle_digest: str | None = None
    pe_count: int = 0
    ready_pe_count: int = 0
    message: str = ""
    conditions: list[Condition] = []


JOB = Kind(
    kind="Job",
    plural="jobs",
    short_names=["sj"],
    spec=JobSpec,
    status=JobStatus,
    rules=[
        CelRule(
            rule="has(self.bundle.configMap) != has(self.bundle.file)",
            message="bundle needs exactly one of configMap and file",
        )
    ],
    columns=[
        PrinterColumn(name="Phase", type="string", json_path=".status.phase"),
        PrinterColumn(name="PEs", type="integer", json_path=".status.peCount"),
        PrinterColumn(name="Ready", type="integer", json_path=".status.readyPeCount"),
        PrinterColumn(name="Message", type="string", json_path=".status.message", priority=1),
        PrinterColumn(name="Age", type="date", json_path=".metadata.creationTimestamp"),
    ],
)
