"""Metrics of consistent regions: read from the cache when Prometheus asks."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from streamgraft_operator.kit.caches import Collection
from streamgraft_operator.kit.parsed import consistent_region_status


class CutCollector(Collector):
    """Cuts that were given up."""

    def __init__(self, regions: Collection) -> None:
        self._regions = regions

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the metrics of all consistent regions that exist now."""
        failed = GaugeMetricFamily(
            "streamgraft_consistent_region_failed_cuts",
            "Cuts of a consistent region that failed since the last one that is complete.",
            labels=("namespace", "streams_job", "consistent_region"),
        )
        for region in self._regions.items():
            spec = region["spec"]  # as it is written: it need not be readable as a whole
            labels = (region["metadata"]["namespace"], spec["job"], spec["region"])
            failed.add_metric(labels, consistent_region_status(region).failed_cuts)
        yield failed
