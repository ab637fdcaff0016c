"""Import and Export: streams that jobs publish for each other."""

from streamgraft_common.resources.base import (
    CelRule,
    Condition,
    CustomKind,
    JobName,
    Model,
    PrinterColumn,
)


class ExportSpec(Model):
    """A stream of a job that other jobs may import."""

    job: JobName
    """Job that exports."""
    operator: str
    """Its export operator."""
    stream: str
    """The stream that is exported."""
    name: str | None = None
    """Name under which it is published."""
    properties: dict[str, str] | None = None
    """Properties under which it is published, for subscriptions."""
    allow_filter: bool = True
    """Whether imports may filter rows before they are sent."""


class ExportStatus(Model):
    """Who imports it."""

    imports: list[str] = []
    """Names of the Imports that are connected."""
    observed_generation: int = 0
    """metadata.generation of the spec that this status is about."""
    conditions: list[Condition] = []
    """Ready: False with reason NotSupported, since this version does nothing with it."""


class ImportSpec(Model):
    """A stream that a job reads from other jobs, by name or by subscription."""

    job: JobName
    """Job that imports."""
    operator: str
    """Its import operator."""
    from_job: JobName | None = None
    """Job whose exports match. Default: any."""
    name: str | None = None
    """Name of the export that is wanted."""
    subscription: str | None = None
    """SQL condition on the properties of exports: all that meet it are wanted."""
    filter: str | None = None
    """SQL condition on rows: only those that meet it are wanted."""


class ImportStatus(Model):
    """What it reads."""

    exports: list[str] = []
    """Names of the Exports that are connected."""
    observed_generation: int = 0
    """metadata.generation of the spec that this status is about."""
    conditions: list[Condition] = []
    """Ready: False with reason NotSupported, since this version does nothing with it."""


EXPORT = CustomKind(
    kind="Export",
    plural="exports",
    short_names=["exp"],
    spec=ExportSpec,
    status=ExportStatus,
    rules=[
        CelRule(
            rule="has(self.name) != has(self.properties)",
            message="an export needs either a name or properties",
        )
    ],
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
