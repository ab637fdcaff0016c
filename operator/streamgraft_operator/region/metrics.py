"""Metrics of the regions, read from the cache when Prometheus asks."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from streamgraft_common.conditions import is_true
from streamgraft_operator.kit.caches import Collection
from streamgraft_operator.kit.parsed import region_status

_LABELS = ("namespace", "streams_job", "region")


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
