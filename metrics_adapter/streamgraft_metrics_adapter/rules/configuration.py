"""Further metrics: a file of PromQL queries, each with the labels that name what it describes.

    metrics:
      - name: http_requests_per_second
        object: {apiVersion: v1, kind: Pod, resource: pods,
                 nameLabel: pod, namespaceLabel: namespace}
        series: http_requests_total{pod!=""}
        query: sum by (namespace, pod) (rate(http_requests_total{pod!=""}[2m]))
        window: 2m

`metrics.yaml` beside this module has the metrics that are always served. docs/operate/metrics.md is
the reference.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal, Self

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from streamgraft_common.kinds import Kind

BUILT_IN = Path(__file__).with_name("metrics.yaml")

_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?")
_SELECTOR = re.compile(r"\s*(?:[A-Za-z_:][A-Za-z0-9_:]*\s*(?:\{.*\})?|\{.+\})\s*", re.DOTALL)

Aggregation = Literal["sum", "avg", "min", "max"]


class ConfigurationError(Exception):
    """The file can't be used; the message says where it is wrong and what to do."""


def seconds_of(text: object) -> float:
    """Return a duration in Prometheus' notation (`90s`, `1m30s`) in seconds. Raises ValueError."""
    found = _DURATION.fullmatch(text) if isinstance(text, str) else None
    if not found or not text:
        raise ValueError("is no duration such as 30s, 2m or 1h")
    hours, minutes, seconds, millis = (int(part or 0) for part in found.groups())
    return hours * 3600 + minutes * 60 + seconds + millis / 1000


Seconds = Annotated[float, BeforeValidator(seconds_of), Field(gt=0, le=86_400)]
Label = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class _Model(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True
    )


class ObjectMapping(_Model):
    """Which object a row of the query describes."""

    api_version: Annotated[str, Field(pattern=r"^([a-z0-9.-]+/)?v[a-z0-9]+$")]
    kind: Annotated[str, Field(pattern=r"^[A-Z][A-Za-z0-9]*$")]
    resource: Annotated[str, Field(pattern=r"^[a-z0-9-]+$", description="Plural, without group.")]
    name_label: Label
    namespace_label: Label | None = None
    """None: the objects are in no namespace."""

    def described(self) -> Kind:
        """Return the kind of object."""
        namespaced = self.namespace_label is not None
        return Kind(self.api_version, self.kind, self.resource, namespaced)

    def labels(self) -> tuple[str, ...]:
        """Return the labels that together name one object."""
        return (*((self.namespace_label,) if self.namespace_label else ()), self.name_label)


class ExternalMapping(_Model):
    """A metric of external.metrics.k8s.io: it describes no object."""

    namespace_label: Label | None = None
    """Rows belong to the namespace that it names; None: to all namespaces."""

    def labels(self) -> tuple[str, ...]:
        """Return the labels by which sample times are kept apart."""
        return (self.namespace_label,) if self.namespace_label else ()


class MetricRule(_Model):
    """One metric: one query for all of its objects."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_:.-]{1,253}$")]
    object: ObjectMapping | None = None
    external: ExternalMapping | None = None
    series: str
    """A selector of the series that the query reads: their sample times are the metric's age."""
    age_series: str | None = None
    """A selector of series that say how old, in seconds, what `series` says was at the scrape."""
    query: Annotated[str, Field(min_length=1)]
    window: Seconds | None = None
    """Over which the query takes rates and averages, served with the value; None: at one time."""
    max_age: Seconds = Field(default=60.0, validate_default=False)
    """A metric whose oldest sample is older is an error."""
    complete_by: tuple[Label, ...] = ()
    """Labels that name what is measured (a partition), whoever reports it. A metric is an error if
    one that was there within five minutes is missing: partial data would look like less load."""
    aggregation: Aggregation = "sum"
    """Of the rows of one object that a metric selector leaves."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.object is None) == (self.external is None):
            raise ValueError("needs either `object` or `external`")
        for name, text in (("series", self.series), ("ageSeries", self.age_series)):
            if text is not None and not _SELECTOR.fullmatch(text):
                raise ValueError(
                    f"`{name}` is no selector such as http_requests_total{{job='web'}}"
                )
        return self

    @property
    def mapping(self) -> ObjectMapping | ExternalMapping:
        """Return whichever mapping the rule has."""
        if self.object is not None:
            return self.object
        assert self.external is not None
        return self.external

    def promql(self) -> str:
        """Return one query for the values and their sample times, told apart by `PART`."""
        value, time = (f'"{PART}", "{part}", "", ""' for part in (VALUE, TIME))
        return f"label_replace(({self.query}), {value}) or label_replace({self._times()}, {time})"

    def _times(self) -> str:
        by = ", ".join(self.mapping.labels())
        age = self.age_series
        sampled = f"timestamp({age}) - {age}" if age else f"timestamp({self.series})"
        times = f"min by ({by}) ({sampled})"
        if not self.complete_by:
            return times
        identity = ", ".join(self.complete_by)
        before = f"last_over_time({self.series}[5m])"
        missing = f"({before} unless on ({identity}) {self.series})"
        return f"({times} unless on ({by}) {missing})"


PART, VALUE, TIME = "streamgraft_part", "value", "time"


class Configuration(_Model):
    """A file of metrics."""

    metrics: tuple[MetricRule, ...] = ()


def read(file: Path) -> tuple[MetricRule, ...]:
    """Return the rules of a file. Raises ConfigurationError."""
    try:
        document = yaml.safe_load(file.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigurationError(f"{file}: {error}") from error
    try:
        return Configuration.model_validate({} if document is None else document).metrics
    except ValidationError as error:
        problems = [f"{_place(part['loc'])}: {part['msg']}" for part in error.errors()]
        raise ConfigurationError(f"{file}: " + "; ".join(problems)) from error


def merged(*parts: Iterable[MetricRule]) -> tuple[MetricRule, ...]:
    """Return all rules. Raises ConfigurationError if two of them serve the same metric."""
    rules = tuple(rule for part in parts for rule in part)
    seen: set[tuple[str, str]] = set()
    for rule in rules:
        key = (rule.object.described().qualified if rule.object else "external", rule.name)
        if key in seen:
            raise ConfigurationError(f'metric "{key[1]}" of {key[0]} is there twice: rename one')
        seen.add(key)
    return rules


def _place(location: tuple[int | str, ...]) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return path.removeprefix(".") or "the file"
