"""Metrics of savepoints: read from the cache when Prometheus asks."""

from collections.abc import Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import key_of
from streamgraft_common.timestamps import from_rfc3339
from streamgraft_operator.kit.caches import Caches
from streamgraft_operator.kit.parsed import savepoint_status
from streamgraft_operator.savepoint.step import OVER


class SavepointCollector(Collector):
    """When savepoints of jobs ended, by how.

    Times, and no counts: objects say them whichever replica leads, and a savepoint that succeeds
    makes up for the failure before it.
    """

    def __init__(self, caches: Caches) -> None:
        self._caches = caches

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the times of all jobs that exist now."""
        ended = GaugeMetricFamily(
            "streamgraft_job_savepoint_timestamp_seconds",
            "When the last savepoint of a job ended (Unix time), by result: completed, failed.",
            labels=("namespace", "streams_job", "result"),
        )
        for job in self._caches.jobs.items():
            for result, at in self._last(job).items():
                ended.add_metric((*key_of(job), result), at)
        yield ended

    def _last(self, job: Object) -> Mapping[str, float]:
        created = job["metadata"].get("creationTimestamp")
        since = from_rfc3339(created) if created else 0.0
        last: dict[str, float] = {}
        for item in self._caches.savepoints_by_job.get(key_of(job)):
            status = savepoint_status(item)
            if _is_of_users(item) and status.phase in OVER and status.completed_at:
                at, result = from_rfc3339(status.completed_at), status.phase.lower()
                if at >= since:  # an earlier job of the same name may have left some
                    last[result] = max(last.get(result, 0.0), at)
        return last


def _is_of_users(item: Object) -> bool:
    """Return whether it is of a whole job: width changes and cuts have savepoints of their own, and
    tell of them."""
    spec = item["spec"]
    going = "deletionTimestamp" in item["metadata"]
    return not (going or spec.get("region") or spec.get("consistentRegion"))
