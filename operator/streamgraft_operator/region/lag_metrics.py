"""How far behind regions that sleep are, under the names that their PEs' metrics have."""

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
)


@dataclass(frozen=True)
class StagePosition:
    """A partition that a stage reads; `stage`: its number in the region, as a label."""

    stage: str
    position: Position


class LagCollector(Collector):
    """The newest positions of regions that sleep, by region."""

    def __init__(self, regions: Collection) -> None:
        self._regions = regions
        self._found: dict[Key, Sequence[StagePosition]] = {}

    def remember(self, key: Key, positions: Sequence[StagePosition]) -> None:
        """Take the positions of a region in the place of earlier ones."""
        self._found[key] = positions

    def forget(self, key: Key) -> None:
        """Tell nothing of a region any more."""
        self._found.pop(key, None)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the three metrics of all partitions."""
        families = [GaugeMetricFamily(name, text, labels=_LABELS) for name, text in _METRICS]
        for key, positions in list(self._found.items()):
            if (region := self._regions.get(key)) is None:
                continue
            place = (key[0], region["spec"]["job"], region["spec"]["region"])
            for item in positions:
                where = item.position
                labels = (*place, item.stage, where.topic, str(where.partition))
                for family, value in zip(
                    families, (where.lag, where.end, where.committed), strict=True
                ):
                    family.add_metric(labels, value)
        yield from families
