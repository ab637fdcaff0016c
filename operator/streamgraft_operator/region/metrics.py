"""Metrics of the regions: read from the cache when Prometheus asks, and counters of changes."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from streamgraft_common.adl import Autoscaling
from streamgraft_common.conditions import is_true
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, key_of
from streamgraft_operator.kit import metrics
from streamgraft_operator.kit.caches import Collection
from streamgraft_operator.kit.parsed import obstacle, region_spec, region_status

_LABELS = ("namespace", "streams_job", "region")
_COUNTERS = {
    "WidthChangeStarted": metrics.WIDTH_CHANGES,
    "WidthChangeRolledBack": metrics.ROLLBACKS,
}
"""By the reason of the event."""


class RegionCollector(Collector):
    """Widths, objectives, and what stands in the way of them."""

    def __init__(self, regions: Collection) -> None:
        self._regions = regions

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the metrics of all regions that exist now."""
        width = GaugeMetricFamily(
            "streamgraft_region_width",
            "Channels of a region: wanted (spec), serving (those that own shards), and the largest"
            " width that its autoscaling allows.",
            labels=(*_LABELS, "kind"),
        )
        resizing = GaugeMetricFamily(
            "streamgraft_region_resizing",
            "1 while shards of a region are on their way.",
            labels=_LABELS,
        )
        skewed = GaugeMetricFamily(
            "streamgraft_region_skewed",
            "1 while one key group of a region is too much for a channel, so that no width helps.",
            labels=_LABELS,
        )
        objective = GaugeMetricFamily(
            "streamgraft_region_latency_objective_seconds",
            "Longest time that records may wait for a region; absent if its application says none.",
            labels=_LABELS,
        )
        for region in self._regions.items():
            spec = region["spec"]  # as it is written: it need not be readable as a whole
            labels = (region["metadata"]["namespace"], spec["job"], spec["region"])
            status = region_status(region)
            width.add_metric((*labels, "wanted"), spec["width"])
            width.add_metric((*labels, "serving"), status.width)
            resizing.add_metric(labels, is_true(status.conditions, "Resizing"))
            # Of a region that sleeps nothing is measured, and the condition says what was before.
            skewed.add_metric(labels, is_true(status.conditions, "Skewed") and not status.asleep)
            if obstacle(region_spec, region):
                continue
            asked = region_spec(region).autoscaling or Autoscaling()
            largest = asked.largest_width(region_spec(region).max_width)
            width.add_metric((*labels, "largest"), largest)
            if asked.latency_seconds is not None:
                objective.add_metric(labels, asked.latency_seconds)
        yield from (width, resizing, skewed, objective)


class ChangeCounters:
    """Width changes begun and taken back, of each region from 0 on: of a series that begins at 1
    nobody sees an increase."""

    def __init__(self) -> None:
        self._shown: dict[Key, tuple[str, str, str]] = {}

    def show(self, region: Object) -> None:
        """Begin to count the changes of a region, unless that was begun before."""
        key, spec = key_of(region), region_spec(region)
        if key not in self._shown:
            labels = self._shown[key] = (key[0], spec.job, spec.region)
            for counter in _COUNTERS.values():
                counter.labels(*labels)

    def count(self, region: Object, reason: str) -> None:
        """Count the event with this reason, of a region that is shown."""
        if counter := _COUNTERS.get(reason):
            counter.labels(*self._shown[key_of(region)]).inc()

    def forget(self, key: Key) -> None:
        """Show nothing more of a region that is gone."""
        if labels := self._shown.pop(key, None):
            for counter in _COUNTERS.values():
                counter.remove(*labels)
