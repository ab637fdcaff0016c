"""Metrics of the regions: read from the cache when Prometheus asks, and counters of changes."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from streamgraft_common.conditions import is_true
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, key_of
from streamgraft_operator.kit import metrics
from streamgraft_operator.kit.caches import Collection
from streamgraft_operator.kit.parsed import region_spec, region_status

_LABELS = ("namespace", "streams_job", "region")
_COUNTERS = {
    "WidthChangeStarted": metrics.WIDTH_CHANGES,
    "WidthChangeRolledBack": metrics.ROLLBACKS,
}
"""By the reason of the event."""


class RegionCollector(Collector):
    """Widths, wanted and serving, and whether a width change is under way."""

    def __init__(self, regions: Collection) -> None:
        self._regions = regions

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the metrics of all regions that exist now."""
        width = GaugeMetricFamily(
            "streamgraft_region_width",
            "Channels of a region: wanted (spec), and serving (those that own shards).",
            labels=(*_LABELS, "kind"),
        )
        resizing = GaugeMetricFamily(
            "streamgraft_region_resizing",
            "1 while shards of a region are on their way.",
            labels=_LABELS,
        )
        for region in self._regions.items():
            spec = region["spec"]  # as it is written: it need not be readable as a whole
            labels = (region["metadata"]["namespace"], spec["job"], spec["region"])
            status = region_status(region)
            width.add_metric((*labels, "wanted"), spec["width"])
            width.add_metric((*labels, "serving"), status.width)
            resizing.add_metric(labels, is_true(status.conditions, "Resizing"))
        yield from (width, resizing)


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
