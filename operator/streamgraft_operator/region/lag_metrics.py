"""How far behind regions that sleep are, under the names that their PEs' metrics have."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from streamgraft_common.kube.store import Key
from streamgraft_operator.kafka.client import Position
from streamgraft_operator.kit.caches import Collection

_LABELS = ("namespace", "streams_job", "region", "stage", "topic", "partition")
_METRICS = (
    ("streamgraft_pe_lag_records", "Records that wait for a region that sleeps."),
    ("streamgraft_pe_input_end_offset", "Last stable offset."),
    ("streamgraft_pe_committed_offset", "Committed position."),
    ("streamgraft_pe_position_age_seconds", "Time since the positions were read from Kafka."),
)


@dataclass(frozen=True)
class StagePosition:
    """A partition that a stage reads, and how far."""

    stage: str
    """Its number in the region, as a label."""
    position: Position


class LagCollector(Collector):
    """The newest positions of regions that sleep, by region."""

    def __init__(self, regions: Collection) -> None:
        self._regions = regions
        self._found: dict[Key, tuple[float, Sequence[StagePosition]]] = {}

    def remember(self, key: Key, positions: Sequence[StagePosition], read_at: float) -> None:
        """Remember the newest positions of a region; `read_at`: when reading them
        began (monotonic clock)."""
        self._found[key] = read_at, positions

    def forget(self, key: Key) -> None:
        """Export nothing of a region any more."""
        self._found.pop(key, None)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the metrics of all partitions."""
        families = [GaugeMetricFamily(name, text, labels=_LABELS) for name, text in _METRICS]
        now = time.monotonic()
        for key, (read_at, positions) in list(self._found.items()):
            if (region := self._regions.get(key)) is None:
                continue
            spec = region["spec"]  # as it is written: it need not be readable as a whole
            place = (key[0], spec["job"], spec["region"])
            for item in positions:
                where = item.position
                labels = (*place, item.stage, where.topic, str(where.partition))
                values = where.lag, where.end, where.committed, max(now - read_at, 0.0)
                for family, value in zip(families, values, strict=True):
                    family.add_metric(labels, value)
        yield from families
