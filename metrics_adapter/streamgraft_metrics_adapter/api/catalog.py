"""Which metrics there are, of which objects; the metrics API asks here for values.

Two kinds of source: the signals of regions, and the rules of the configuration.
"""

from streamgraft_common.kinds import NAMESPACE, Kind
from streamgraft_metrics_adapter.api.object_labels import ObjectLabels
from streamgraft_metrics_adapter.objects import REGIONS, Item
from streamgraft_metrics_adapter.regions import Region
from streamgraft_metrics_adapter.rules.rule_metrics import Measured, RuleMetric, RuleMetrics
from streamgraft_metrics_adapter.selectors import parse
from streamgraft_metrics_adapter.signals.provider import Provider, Reading
from streamgraft_metrics_adapter.status import NotFoundError, UnavailableError


class Catalog:
    """All metrics of the API. Every method raises StatusErrors: not found, or no value now."""

    def __init__(self, provider: Provider, rules: RuleMetrics, labels: ObjectLabels) -> None:
        self._provider = provider
        self._rules = rules
        self._labels = labels

    def metrics(self) -> list[tuple[Kind, str]]:
        """Return every metric of the custom metrics API with what it describes."""
        return [*((REGIONS, name) for name in self._provider.names()), *self._rules.objects]

    def external_metrics(self) -> list[str]:
        """Return the names of the external metrics API."""
        return list(self._rules.externals)

    def region(self, namespace: str, name: str) -> tuple[Region, list[Reading]]:
        """Return a region with all of its signals."""
        region = self._provider.region(namespace, name)
        return region, self._provider.read_all(region)

    def item(
        self, resource: str, namespace: str, name: str, metric: str, metric_selector: str
    ) -> Item:
        """Return a metric of one object; `resource` as in `Kind.qualified`."""
        if self._is_signal(resource, metric):
            self._need_no_labels(metric, metric_selector)
            return self._signal(self._provider.by_name(namespace, name, metric), metric_selector)
        described, found = self._rule(resource, namespace, metric)
        return _item(described, namespace, name, found, metric_selector)

    def items(
        self, resource: str, namespace: str, selector: str, metric: str, metric_selector: str
    ) -> list[Item]:
        """Return a metric of all objects of a namespace ("": without one) that match.

        Regions: all of them or an error. Other objects: those with a value, an error if none has
        one; the HPA counts pods that are missing in the answer with caution.
        """
        if self._is_signal(resource, metric):
            self._need_no_labels(metric, metric_selector)
            readings = self._provider.by_selector(namespace, parse(selector), metric)
            return [self._signal(reading, metric_selector) for reading in readings]
        described, found = self._rule(resource, namespace, metric)
        items: list[Item] = []
        failure: UnavailableError | NotFoundError | None = None
        for name in self._labels.names(described, namespace, parse(selector)):
            try:
                items.append(_item(described, namespace, name, found, metric_selector))
            except (UnavailableError, NotFoundError) as error:
                failure = error
        if failure is not None and not items:
            raise failure
        return items

    def namespace_item(self, namespace: str, metric: str, metric_selector: str) -> Item:
        """Return a metric that describes a namespace."""
        return self.item(NAMESPACE.qualified, "", namespace, metric, metric_selector)

    def external(
        self, namespace: str, metric: str, selector: str
    ) -> tuple[float | None, list[Measured]]:
        """Return the window (seconds) and the values of an external metric whose labels match."""
        found = self._rules.externals.get(metric)
        if found is None or found.rule.external is None:
            raise NotFoundError(f'external metric "{metric}" not found')
        place = (namespace,) if found.rule.external.namespace_label else ()
        return found.rule.window, found.all_measured(place, parse(selector))

    def _is_signal(self, resource: str, metric: str) -> bool:
        return resource == REGIONS.qualified and metric in self._provider.names()

    def _need_no_labels(self, metric: str, metric_selector: str) -> None:
        if not parse(metric_selector).matches({}):
            raise NotFoundError(f"{metric} has no labels: nothing matches {metric_selector!r}")

    def _signal(self, reading: Reading, metric_selector: str) -> Item:
        return Item(
            resource=REGIONS,
            namespace=reading.region.namespace,
            name=reading.region.name,
            metric=reading.metric,
            value=reading.signal().value,
            sampled_at=reading.sampled_at or 0.0,
            window_seconds=self._provider.window_seconds,
            selector=metric_selector,
        )

    def _rule(self, resource: str, namespace: str, metric: str) -> tuple[Kind, RuleMetric]:
        for (described, name), found in self._rules.objects.items():
            if (described.qualified, name) == (resource, metric):
                if described.namespaced == bool(namespace):
                    return described, found
                place = "in" if described.namespaced else "outside of"
                raise NotFoundError(f"{resource} are {place} namespaces")
        raise NotFoundError(f'metric "{metric}" of {resource} not found')


def _item(
    described: Kind, namespace: str, name: str, found: RuleMetric, metric_selector: str
) -> Item:
    place = (namespace, name) if described.namespaced else (name,)
    measured = found.measured(place, parse(metric_selector))
    return Item(
        resource=described,
        namespace=namespace,
        name=name,
        metric=found.rule.name,
        value=measured.value,
        sampled_at=measured.sampled_at,
        window_seconds=found.rule.window,
        selector=metric_selector,
    )
