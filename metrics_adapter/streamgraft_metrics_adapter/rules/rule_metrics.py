"""Metrics of the configuration: the rows of each rule's last query, in memory."""

import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from streamgraft_common.kinds import NAMESPACE, Kind
from streamgraft_metrics_adapter import telemetry
from streamgraft_metrics_adapter.objects import LARGEST_VALUE
from streamgraft_metrics_adapter.prometheus.source import Row, Source, SourceError
from streamgraft_metrics_adapter.rules.configuration import PART, VALUE, Aggregation, MetricRule
from streamgraft_metrics_adapter.selectors import Selector
from streamgraft_metrics_adapter.status import NotFoundError, UnavailableError
from streamgraft_metrics_adapter.time_slices import in_slices

log = logging.getLogger(__name__)

_AGGREGATIONS: Mapping[Aggregation, Callable[[Sequence[float]], float]] = {
    "sum": math.fsum,
    "avg": fmean,
    "min": min,
    "max": max,
}

Place = tuple[str, ...]
"""Values of the labels of a rule's mapping: (namespace, name), (name,), (namespace,) or ()."""


@dataclass(frozen=True, slots=True)
class LabelledValue:
    """One value and the labels that the mapping does not use."""

    labels: Mapping[str, str]
    value: float


@dataclass(slots=True)
class Table:
    """The answer to a rule's query."""

    rows: dict[Place, list[LabelledValue]] = field(default_factory=dict)
    times: dict[Place, float] = field(default_factory=dict)
    """Unix time of the oldest sample; none if what is there is not all."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A value with the time of its oldest sample (Unix) and its labels."""

    value: float
    sampled_at: float
    labels: Mapping[str, str] = field(default_factory=dict)


class RuleMetric:
    """One rule and what its last query brought."""

    def __init__(self, rule: MetricRule) -> None:
        self.rule = rule
        self.query_name = f"{rule.object.resource if rule.object else 'external'}/{rule.name}"
        self._table: Table | None = None
        self._failure: str | None = None

    async def refresh(self, evaluated_at: float, source: Source) -> bool:
        """Evaluate the query anew, and tell whether that went well; if it did not, the last answer
        stays until it is too old."""
        try:
            rows = await source.rows(self.query_name, self.rule.promql(), evaluated_at)
            self._table = await table_of(self.rule, rows)
        except SourceError as error:
            if self._failure is None:
                log.warning("metric %s: %s", self.query_name, error)
            self._failure = str(error)
            return False
        self._failure = None
        return True

    def places(self) -> Iterable[Place]:
        """Return what has values now."""
        return self._table.rows if self._table else ()

    def measured(self, place: Place, labels: Selector) -> Measured:
        """Return the value of an object, of the rows whose labels match.

        Raises NotFoundError, or UnavailableError if it has no value that may be served.
        """
        rows = [row for row in self._rows(place) if labels.matches(row.labels)]
        if not rows:
            raise NotFoundError(f"{self._of(place)} has no series that match")
        value = _AGGREGATIONS[self.rule.aggregation]([row.value for row in rows])
        return Measured(self._finite(value, place), self._time(place))

    def all_measured(self, place: Place, labels: Selector) -> list[Measured]:
        """Return every row whose labels match (possibly none). Raises UnavailableError."""
        rows = [row for row in self._rows(place) if labels.matches(row.labels)]
        return [
            Measured(self._finite(row.value, place), self._time(place), row.labels) for row in rows
        ]

    def _rows(self, place: Place) -> list[LabelledValue]:
        if self._table is None:
            unread = "NoData: it was not read yet"
            raise self._unavailable(place, self._source_failure() or unread)
        return self._table.rows.get(place, [])

    def _time(self, place: Place) -> float:
        assert self._table is not None
        sampled_at = self._table.times.get(place)
        if sampled_at is None:
            missing = "NoData: something that was measured within five minutes is missing"
            raise self._unavailable(place, missing)
        age = time.time() - sampled_at
        # Whatever compares to NaN is false, so NaN must not pass either; nor a time far ahead.
        if not -self.rule.max_age <= age <= self.rule.max_age:
            stale = (
                f"Stale: the oldest sample is {age:.0f} s old, not within {self.rule.max_age:g} s"
            )
            raise self._unavailable(place, self._source_failure() or stale)
        return sampled_at

    def _source_failure(self) -> str | None:
        return f"PrometheusUnavailable: {self._failure}" if self._failure else None

    def _finite(self, value: float, place: Place) -> float:
        if not abs(value) <= LARGEST_VALUE:
            raise self._unavailable(place, f"NotANumber: the query's value is {value}")
        return value

    def _unavailable(self, place: Place, reason: str) -> UnavailableError:
        telemetry.SIGNAL_ERRORS.labels(self.query_name, reason.partition(":")[0]).inc()
        return UnavailableError(f"{self._of(place)} has no value: {reason}")

    def _of(self, place: Place) -> str:
        return f"{self.rule.name} of {'/'.join(place) or 'everything'}"


class RuleMetrics:
    """All metrics of the configuration; `RuleRefresher` keeps them fresh."""

    def __init__(self, rules: Iterable[MetricRule]) -> None:
        self.objects: dict[tuple[Kind, str], RuleMetric] = {}
        self.externals: dict[str, RuleMetric] = {}
        self.replace(rules)

    def replace(self, rules: Iterable[MetricRule]) -> None:
        """Serve these rules from now on; those that did not change keep their values."""
        known = {metric.rule: metric for metric in self.all()}
        metrics = [known.get(rule) or RuleMetric(rule) for rule in rules]
        self.externals = {item.rule.name: item for item in metrics if item.rule.external}
        self.objects = {
            (item.rule.object.described(), item.rule.name): item
            for item in metrics
            if item.rule.object
        }

    def described(self) -> set[Kind]:
        """Return the kinds of objects that label selectors may choose from."""
        # Nobody can ask for several namespaces at once.
        return {resource for resource, _ in self.objects if resource != NAMESPACE}

    def all(self) -> list[RuleMetric]:
        """Return every metric."""
        return [*self.objects.values(), *self.externals.values()]


async def table_of(rule: MetricRule, rows: Iterable[Row]) -> Table:
    """Return the rows by what they describe; rows that don't name it describe nothing."""
    table = Table()
    wanted = rule.mapping.labels()
    async for found, value in in_slices(rows):
        labels = dict(found)
        part = labels.pop(PART)
        place = tuple(labels.pop(name, "") for name in wanted)
        if not all(place):
            continue
        if part == VALUE:
            table.rows.setdefault(place, []).append(LabelledValue(labels, value))
        else:
            table.times[place] = value
    return table
