"""Signals of all regions as metrics, read from memory whenever Prometheus scrapes."""

from collections.abc import Iterable

from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from streamgraft_autoscaler import NotReady
from streamgraft_metrics_adapter.provider import Provider

_LABELS = ("namespace", "name", "metric")


class _Signals(Collector):
    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    def collect(self) -> Iterable[Metric]:
        values = GaugeMetricFamily(
            "streamgraft_region_signal",
            "Signals as served, by region; absent while a signal has no value",
            labels=_LABELS,
        )
        troubles = GaugeMetricFamily(
            "streamgraft_region_signal_unavailable",
            "1 while a signal of a region has no value, with the reason",
            labels=(*_LABELS, "reason"),
        )
        for reading in self._provider.everything():
            region, result = reading.region, reading.result
            labels = [region.namespace, region.name, reading.metric]
            if isinstance(result, NotReady):
                troubles.add_metric([*labels, result.reason.value], 1)
            else:
                values.add_metric(labels, result.value)
        return values, troubles


def registry(provider: Provider) -> CollectorRegistry:
    """Return what /metrics shows: the signals, and all that the process says about itself."""
    found = CollectorRegistry()
    found.register(REGISTRY)
    found.register(_Signals(provider))
    return found
