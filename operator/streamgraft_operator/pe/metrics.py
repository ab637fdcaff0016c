"""Metrics of the PEs that a PE can't tell itself: whether it is ready, and that it failed."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, key_of
from streamgraft_operator.kit import metrics
from streamgraft_operator.kit.caches import Caches
from streamgraft_operator.kit.parsed import pe_status


class ElementCollector(Collector):
    """Readiness, read from the cache when Prometheus asks."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield whether each PE is ready, but for those that go and those that are done."""
        ready = GaugeMetricFamily(
            "streamgraft_operator_pe_ready",
            "1 while a processing element is ready, else 0; absent once it has ended for good.",
            labels=("namespace", "streams_job", "pe"),
        )
        for item in self._caches.processing_elements.items():
            if self._goes(item):
                continue
            status = pe_status(item)
            if status.stopped is None or status.stopped.reason != "PodCompleted":
                ready.add_metric(_labels(item), status.phase == "Running")
        yield ready

    def _goes(self, item: Object) -> bool:
        namespace, job, _ = _labels(item)
        owner = self._caches.jobs.get((namespace, job))
        return (
            owner is None
            or "deletionTimestamp" in owner["metadata"]
            or "deletionTimestamp" in item["metadata"]
        )


class FailureCounters:
    """Pods that failed, of each PE from 0 on: of a series that begins at 1 nobody sees an
    increase."""

    def __init__(self) -> None:
        self._shown: dict[Key, tuple[str, str, str]] = {}

    def show(self, item: Object) -> None:
        """Begin to count the failures of a PE, unless that was begun before."""
        if key_of(item) not in self._shown:
            labels = self._shown[key_of(item)] = _labels(item)
            metrics.PE_FAILURES.labels(*labels)

    def count(self, item: Object) -> None:
        """Count a failure of a PE that is shown."""
        metrics.PE_FAILURES.labels(*self._shown[key_of(item)]).inc()

    def forget(self, key: Key) -> None:
        """Show nothing more of a PE that is gone."""
        if labels := self._shown.pop(key, None):
            metrics.PE_FAILURES.remove(*labels)


def _labels(item: Object) -> tuple[str, str, str]:
    namespace, name = key_of(item)
    return namespace, item["spec"]["job"], name
