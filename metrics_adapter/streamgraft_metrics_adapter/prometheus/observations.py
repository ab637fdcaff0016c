"""What one refresh saw, per region, as plain numbers in memory."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from streamgraft_autoscaler import FIRST_STAGE, TopicLag
from streamgraft_metrics_adapter.prometheus.queries import INPUT_LABEL, LEAST_SHARE, Input
from streamgraft_metrics_adapter.regions import RegionKey


@dataclass(slots=True)
class StageObservation:
    """One stage. Absent: None, or no topic. Units as in `queries.Input`."""

    lag: dict[str, float] = field(default_factory=dict)
    partitions: dict[str, int] = field(default_factory=dict)
    values: dict[Input, float] = field(default_factory=dict)

    def topics(self) -> list[TopicLag]:
        """Return the lag of every input topic."""
        return [
            TopicLag(topic, records, self.partitions.get(topic, 0))
            for topic, records in sorted(self.lag.items())
        ]

    def in_records(self) -> None:
        """Turn what is counted in offsets into records."""
        share = self.values.pop(Input.RECORD_SHARE, math.nan)
        if not LEAST_SHARE <= share < 1:  # nothing was read, or PEs of a former release don't tell
            return
        self.lag = {topic: records * share for topic, records in self.lag.items()}
        for name in _OFFSETS & self.values.keys():
            self.values[name] *= share


@dataclass(slots=True)
class RegionObservation:
    """One region: its stages by index, and the values of the whole region."""

    stages: dict[str, StageObservation] = field(default_factory=dict)
    values: dict[Input, float] = field(default_factory=dict)

    def stage(self, index: str) -> StageObservation:
        """Return a stage, which is created if it is new."""
        found = self.stages.get(index)
        if found is None:
            found = self.stages[index] = StageObservation()
        return found


_OFFSETS = {
    Input.LAG_CHANGE,
    Input.INPUT_RATE,
    Input.PROCESSING_RATE,
    Input.LARGEST_RATE,
    Input.MEDIAN_RATE,
}
"""Values that are counted in offsets, as lags are."""
_INPUTS = {name.value: name for name in Input}
_OF_REGION = frozenset(
    {
        Input.SAMPLE_TIME,
        Input.POSITION_AGE,
        Input.STATE_BYTES,
    }
)


MOST_ROWS = 10_000
"""Of a region; what comes beyond is left out. A pod says what topics and stages there are, and what
one region says must not cost the others their time."""


class ObservationBuilder:
    """Sorts the rows of one refresh by region and stage."""

    def __init__(self) -> None:
        self.regions: dict[RegionKey, RegionObservation] = {}
        self._rows: Counter[RegionKey] = Counter()

    def in_records(self) -> dict[RegionKey, RegionObservation]:
        """Return the regions, with what was counted in offsets in records, once all rows are in."""
        for region in self.regions.values():
            for stage in region.stages.values():
                stage.in_records()
        return self.regions

    def add(self, labels: Mapping[str, str], value: float) -> None:
        """Take in one row."""
        # Series of others may have our names without our labels; no region is called "".
        key = (labels.get("namespace", ""), labels.get("streams_job", ""), labels["region"])
        region = self.regions.get(key)
        if region is None:
            region = self.regions[key] = RegionObservation()
        self._rows[key] += 1
        if self._rows[key] > MOST_ROWS:
            return
        name = _INPUTS[labels[INPUT_LABEL]]
        if name in _OF_REGION:
            region.values[name] = value
            return
        stage = region.stage(labels.get("stage", FIRST_STAGE))
        if name is Input.LAG:
            stage.lag[labels.get("topic", "")] = value
        elif name is Input.PARTITIONS:
            stage.partitions[labels.get("topic", "")] = int(value) if math.isfinite(value) else 0
        else:
            stage.values[name] = value
