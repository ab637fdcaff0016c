"""The metrics of a PE: docs/develop/contracts.md, "Metrics of a PE"."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from streamgraft_pe_runtime.reports import batch_seconds, gaps, late_rows

_BATCH_BUCKETS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.5, 3, 6, 12, 30, 60, 120)
_HANDOVER_BUCKETS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.2, 2, 3, 5, 10, 30)
_PARTITION = ("topic", "partition")
_SHARD = ("shard",)


class PositionAges(Collector):
    """How long ago each partition's positions were read, as of the scrape.

    An age and no time: it is right whatever the clocks of other machines say. Gauges that nobody
    sets any more look as fresh as ever; only this tells that Kafka does not answer.
    """

    def __init__(self) -> None:
        self._read_at: dict[tuple[str, str], float] = {}

    def read(self, topic: str, partition: int, at: float) -> None:
        """Note when positions were read (monotonic clock, seconds)."""
        self._read_at[topic, str(partition)] = at

    def drop(self, topic: str, partition: int) -> None:
        """Forget a partition."""
        self._read_at.pop((topic, str(partition)), None)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the ages, in seconds."""
        family = GaugeMetricFamily(
            "streamgraft_pe_position_age_seconds",
            "Time since the positions of a partition were read from Kafka.",
            labels=_PARTITION,
        )
        now = time.monotonic()
        for labels, at in list(self._read_at.items()):
            family.add_metric(labels, max(now - at, 0.0))
        yield family


class PeMetrics:
    """All series of one PE, in a registry of their own."""

    def __init__(self, slots: int) -> None:
        registry = self._registry = CollectorRegistry()
        self._add_batches(registry)
        self.lag = Gauge(
            "streamgraft_pe_lag_records",
            "Records not yet committed: last stable offset minus committed position.",
            _PARTITION,
            registry=registry,
        )
        self.end_offset = Gauge(
            "streamgraft_pe_input_end_offset", "Last stable offset.", _PARTITION, registry=registry
        )
        self.committed_offset = Gauge(
            "streamgraft_pe_committed_offset", "Committed position.", _PARTITION, registry=registry
        )
        self._add_left_out(registry)
        self.position_ages = PositionAges()
        registry.register(self.position_ages)
        self.busy_seconds = Counter(
            "streamgraft_pe_busy_seconds_total",
            "Time of all tasks, summed over slots.",
            registry=registry,
        )
        self.slots = Gauge("streamgraft_pe_slots", "Task slots.", registry=registry)
        self.slots.set(slots)
        self.trigger_seconds = Gauge(
            "streamgraft_pe_trigger_seconds",
            "Seconds between the triggers of a query, of which PEs choose the length.",
            registry=registry,
        )
        self.restarts = Counter(
            "streamgraft_pe_query_restarts_total",
            "Queries restarted after a failure.",
            _SHARD,
            registry=registry,
        )
        self.state_rows = Gauge(
            "streamgraft_pe_state_rows", "Rows of state.", _SHARD, registry=registry
        )
        self.state_bytes = Gauge(
            "streamgraft_pe_state_bytes", "Memory of state.", _SHARD, registry=registry
        )
        self.shards = Gauge("streamgraft_pe_shards", "Shards held.", registry=registry)
        self.handover_seconds = Histogram(
            "streamgraft_pe_handover_seconds",
            "How long a shard takes to start (to its first trigger's end) and to stop.",
            ("phase",),
            buckets=_HANDOVER_BUCKETS,
            registry=registry,
        )
        self.unclean_stops = Counter(
            "streamgraft_pe_unclean_stops_total",
            "Shards not stopped at a batch boundary.",
            registry=registry,
        )

    def _add_batches(self, registry: CollectorRegistry) -> None:
        self.input_rows = Counter(
            "streamgraft_pe_input_rows_total", "Rows read.", _SHARD, registry=registry
        )
        self.input_gaps = Counter(
            "streamgraft_pe_input_gaps_total",
            "Offsets passed that hold no record, such as the ends of transactions.",
            _SHARD,
            registry=registry,
        )
        self.output_rows = Counter(
            "streamgraft_pe_output_rows_total", "Rows written.", _SHARD, registry=registry
        )
        self.batch_seconds = Histogram(
            "streamgraft_pe_batch_duration_seconds",
            "Duration of micro-batches with data.",
            _SHARD,
            buckets=_BATCH_BUCKETS,
            registry=registry,
        )

    def _add_left_out(self, registry: CollectorRegistry) -> None:
        self.lost_records = Counter(
            "streamgraft_pe_lost_records_total",
            "Records that retention deleted before they were read.",
            _PARTITION,
            registry=registry,
        )
        self.malformed_records = Counter(
            "streamgraft_pe_malformed_records_total",
            "Records that a source could not read.",
            ("operator", "topic"),
            registry=registry,
        )
        self.late_rows = Counter(
            "streamgraft_pe_late_rows_total",
            "Rows that came behind the watermark and were left out.",
            _SHARD,
            registry=registry,
        )

    def begin_anew(self) -> None:
        """Forget what another PE left out, whose pod was ours: with the next one's labels it would
        be a new loss. The other counters tell of the process, as that it is warm."""
        self.lost_records.clear()
        self.malformed_records.clear()

    def count(self, report: Mapping[str, Any], shares: Mapping[int, float]) -> None:
        """Count a batch, as Spark reports it; `shares`: which part of it each shard has."""
        passed, late, seconds = gaps(report), late_rows(report), batch_seconds(report)
        written = max(report["sink"].get("numOutputRows", 0), 0)
        for shard, share in shares.items():
            label = str(shard)
            self.input_rows.labels(label).inc(report["numInputRows"] * share)
            self.input_gaps.labels(label).inc(passed * share)
            self.output_rows.labels(label).inc(written * share)
            self.late_rows.labels(label).inc(late * share)
            self.batch_seconds.labels(label).observe(seconds)

    def held(self, shards: int) -> None:
        """Note how many shards we hold."""
        self.shards.set(shards)

    def failed(self, shard: int) -> None:
        """Note that a shard's query failed, and will be started again."""
        self.restarts.labels(str(shard)).inc()

    def started(self, seconds: float) -> None:
        """Note how long a start took, to the end of the first trigger."""
        self.handover_seconds.labels("start").observe(seconds)

    def stopped(self, seconds: float, *, clean: bool) -> None:
        """Note how long a stop took, and whether it was at a batch boundary."""
        self.handover_seconds.labels("stop").observe(seconds)
        if not clean:
            self.unclean_stops.inc()

    def add_shard(self, shard: int) -> None:
        """Start the counters of a shard at 0, so that a rate over the first rows is right."""
        for counter in (self.input_rows, self.input_gaps, self.output_rows, self.late_rows):
            counter.labels(shard)
        self.restarts.labels(shard)

    def drop_shard(self, shard: int) -> None:
        """Remove the gauges of a shard that another PE has now; counters stay."""
        for gauge in (self.state_rows, self.state_bytes):
            _remove(gauge, str(shard))

    def drop_partition(self, topic: str, partition: int) -> None:
        """Remove the gauges of a partition, or its lag would count twice."""
        for gauge in (self.lag, self.end_offset, self.committed_offset):
            _remove(gauge, topic, str(partition))
        self.position_ages.drop(topic, partition)

    def exposition(self) -> bytes:
        """Return all series in Prometheus' text format."""
        return generate_latest(self._registry)


def _remove(gauge: Gauge, *labels: str) -> None:
    try:
        gauge.remove(*labels)
    except KeyError:
        return  # it was never set
