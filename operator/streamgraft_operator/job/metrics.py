"""Metrics of the jobs: read from the cache when Prometheus asks."""

from collections.abc import Iterator
from typing import get_args

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from streamgraft_common.kube.store import key_of
from streamgraft_operator.job.step import Phase
from streamgraft_operator.kit.caches import Collection
from streamgraft_operator.kit.parsed import job_status

_LABELS = ("namespace", "streams_job")


class JobCollector(Collector):
    """The health of each job, whatever it consists of."""

    def __init__(self, jobs: Collection) -> None:
        self._jobs = jobs

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the metrics of all jobs but those that are being deleted."""
        phase = GaugeMetricFamily(
            "streamgraft_job_phase",
            "1 for the phase that a job is in, 0 for each of the others.",
            labels=(*_LABELS, "phase"),
        )
        condition = GaugeMetricFamily(
            "streamgraft_job_condition",
            "1 while a condition of a job is True, else 0; absent before it is known.",
            labels=(*_LABELS, "type"),
        )
        pes = GaugeMetricFamily(
            "streamgraft_job_pes",
            "Processing elements of a job: wanted (at the present widths), and ready.",
            labels=(*_LABELS, "kind"),
        )
        for job in self._jobs.items():
            if "deletionTimestamp" in job["metadata"]:
                continue
            key, status = key_of(job), job_status(job)
            for each in get_args(Phase):
                phase.add_metric((*key, each), status.phase == each)
            for item in status.conditions:
                condition.add_metric((*key, item.type), item.status == "True")
            pes.add_metric((*key, "wanted"), status.pe_count)
            pes.add_metric((*key, "ready"), status.ready_pe_count)
        yield from (phase, condition, pes)
