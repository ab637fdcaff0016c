"""The base of all resource models, and the parts that kinds share."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from streamgraft_common import names
from streamgraft_common.kinds import Kind
from streamgraft_common.quantities import LONGEST


class Model(BaseModel):
    """A part of a resource: frozen, camelCase on the wire, unknown fields kept out."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="ignore",
        frozen=True,
        use_attribute_docstrings=True,
    )

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Return the model itself, since it never changes.

        pydantic copies defaults for every instance, which would take most of the time of reading
        a resource.
        """
        return self

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form, without fields that are None."""
        return self.model_dump(by_alias=True, exclude_none=True, mode="json")


NULLABLE = (
    BeforeValidator(lambda value: {} if value is None else value),
    Field(json_schema_extra={"nullable": True}),
)
"""For maps that several managers may write: server-side apply leaves null where the last entry
went, though another manager still has the map."""


class Condition(Model):
    """A condition in Kubernetes' own form."""

    type: str
    """What it is about."""
    status: Literal["True", "False", "Unknown"]
    """Whether it holds."""
    reason: str
    """Why, in one CamelCase word."""
    message: str = ""
    """Why, for people."""
    last_transition_time: str | None = None
    """When the status changed last (RFC 3339)."""
    observed_generation: int | None = None
    """metadata.generation of the spec that was looked at."""


class PrinterColumn(Model):
    """A column of `kubectl get`."""

    name: str
    type: Literal["string", "integer", "number", "boolean", "date"]
    json_path: str
    description: str = ""
    priority: int = 0


class CelRule(Model):
    """A rule of a spec or of an object as a whole, in CEL."""

    rule: str
    message: str


class Scale(Model):
    """The paths of a scale subresource."""

    spec_replicas_path: str
    status_replicas_path: str
    label_selector_path: str


@dataclass(frozen=True, kw_only=True, eq=False)
class CustomKind(Kind):
    """A kind of our own: `crds` renders its definition, tests hold the drift."""

    api_version: str = names.API_VERSION
    short_names: Sequence[str] = ()
    spec: type[BaseModel]
    status: type[BaseModel]
    columns: Sequence[PrinterColumn] = ()
    rules: Sequence[CelRule] = ()
    """Of the spec."""
    object_rules: Sequence[CelRule] = ()
    """Of the object as a whole, whose name they see."""
    scale: Scale | None = None
    selectable: Sequence[str] = ()
    """JSON paths of fields that field selectors can name, beside those of metadata."""
    categories: Sequence[str] = ("streamgraft", "streams")

    def manifest(
        self, name: str, namespace: str, spec: BaseModel | dict[str, Any], **metadata: Any
    ) -> dict[str, Any]:
        """Return a new object of this kind as a plain dict."""
        wire = spec.to_wire() if isinstance(spec, Model) else spec
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "metadata": {"name": name, "namespace": namespace, **metadata},
            "spec": wire,
        }


Quantity = Annotated[
    str,
    Field(
        pattern=r"^([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][0-9]{1,2}|[mk]|[KMGTPE]i?)?$",
        max_length=LONGEST,
    ),
]


JobName = Annotated[str, Field(pattern=names.OBJECT_NAME, max_length=names.MAX_JOB_NAME)]
"""Name of a Job, which is a label's value too."""
ObjectName = Annotated[str, Field(pattern=names.OBJECT_NAME, max_length=names.MAX_OBJECT_NAME)]
"""Name of an object of Kubernetes that a setting names, such as a Secret."""
RegionName = Annotated[
    str, Field(pattern=r"^[a-z]([a-z0-9-]*[a-z0-9])?$", max_length=names.MAX_PART_NAME)
]
"""Name of a region in the application."""


class Resources(Model):
    """Compute resources, as in a container."""

    requests: dict[str, Quantity] = {}
    """What the scheduler sets aside, by resource name."""
    limits: dict[str, Quantity] = {}
    """What may be used at most, by resource name."""
