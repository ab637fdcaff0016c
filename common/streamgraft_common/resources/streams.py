"""Import and Export: streams that jobs publish for each other."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from streamgraft_common.resources.base import (
    CelRule,
    Condition,
    CustomKind,
    JobName,
    Model,
    PrinterColumn,
)

StreamProperties = Annotated[
    dict[str, Any],
    BeforeValidator(lambda value: {} if value is None else value),
    Field(
        json_schema_extra={
            "nullable": True,
            "additionalProperties": {"x-kubernetes-preserve-unknown-fields": True},
        }
    ),
]
"""Integers, floats, texts and lists of them, by name."""
Namespaces = list[Annotated[str, Field(max_length=63)]]


class ExportSpec(Model):
    """A stream of a job that other jobs may import. Yours to edit: name, properties, allowFilter
    and namespaces; the job's next submission with another declaration writes them anew."""

    job: JobName
    """Job that exports."""
    operator: str
    """Its export operator."""
    stream: str
    """The stream that is exported."""
    name: str | None = None
    """Name under which it is published."""
    properties: StreamProperties = {}
    """Properties under which it is published, for subscriptions."""
    allow_filter: bool = True
    """Whether imports may have a filter."""
    namespaces: Namespaces = []
    """Other namespaces whose jobs may import it; `*`: all."""
    topic: str = ""
    """Kafka topic that its records are in. The operator's."""
    bootstrap_servers: str = ""
    """Brokers that have the topic. The operator's."""
    tls: bool = False
    """Whether these speak TLS. The operator's."""
    stream_schema: str = Field(default="", alias="schema")
    """Schema of its rows: Spark's JSON form of a StructType. The operator's."""


class ExportStatus(Model):
    """Who imports it."""

    imports: list[str] = []
    """The Imports that are connected, as `<namespace>/<name>`."""
    observed_generation: int = 0
    """metadata.generation of the spec that this status is about."""
    conditions: list[Condition] = []
    """Ready: imports can find it."""


class ImportSpec(Model):
    """A stream that a job reads from other jobs, by name or by subscription. Yours to edit: name,
    subscription, filter and namespaces; as for exports."""

    job: JobName
    """Job that imports."""
    operator: str
    """Its import operator."""
    from_job: JobName | None = None
    """Job whose exports match. Default: any."""
    name: str | None = None
    """Name of the export that is wanted."""
    subscription: str | None = None
    """Condition on the properties of exports: all that meet it are wanted."""
    filter: str | None = None
    """Condition on rows: only those that meet it are wanted."""
    namespaces: Namespaces = []
    """Other namespaces whose exports match, if they allow it; `*`: all."""
    bootstrap_servers: str = ""
    """Brokers that exports must be at. The operator's."""
    tls: bool = False
    """Whether these speak TLS. The operator's."""
    stream_schema: str = Field(default="", alias="schema")
    """Schema of the rows that it wants: Spark's JSON form of a StructType. The operator's."""


class StreamChange(Model):
    """What a function of an application changed of an export or import of its own job."""

    operator: str
    """The export or import operator."""
    field: Literal["properties", "subscription", "filter"]
    """Field of the Export's or Import's spec."""
    value: Annotated[Any, Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})]
    """Its new value."""
    id: str
    """Of this change alone."""
    at: str
    """When it was asked for (RFC 3339)."""


class ImportStatus(Model):
    """What it reads."""

    exports: list[str] = []
    """The Exports that are connected, as `<namespace>/<name>`."""
    observed_generation: int = 0
    """metadata.generation of the spec that this status is about."""
    conditions: list[Condition] = []
    """Ready: it reads an export. Fits: what it asks for is valid, and all exports that it wants fit
    its schema."""


EXPORT = CustomKind(
    kind="Export",
    plural="exports",
    short_names=["exp"],
    spec=ExportSpec,
    status=ExportStatus,
    columns=[
        PrinterColumn(name="Job", type="string", json_path=".spec.job"),
        PrinterColumn(name="Stream", type="string", json_path=".spec.stream"),
        PrinterColumn(name="Imports", type="string", json_path=".status.imports", priority=1),
        PrinterColumn(name="Age", type="date", json_path=".metadata.creationTimestamp"),
    ],
)

IMPORT = CustomKind(
    kind="Import",
    plural="imports",
    short_names=["imp"],
    spec=ImportSpec,
    status=ImportStatus,
    rules=[
        CelRule(
            rule="has(self.name) != has(self.subscription)",
            message="an import needs either a name or a subscription",
        )
    ],
    columns=[
        PrinterColumn(name="Job", type="string", json_path=".spec.job"),
        PrinterColumn(name="Wants", type="string", json_path=".spec.name"),
        PrinterColumn(name="Exports", type="string", json_path=".status.exports", priority=1),
        PrinterColumn(name="Age", type="date", json_path=".metadata.creationTimestamp"),
    ],
)
