"""What one refresh saw, per region, as plain numbers in memory."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from streamgraft_autoscaler import TopicLag
from streamgraft_metrics_adapter.queries import INPUT_LABEL, Input
from streamgraft_metrics_adapter.source import Rows

FIRST_STAGE = "0"
"""Where the records of a region come in."""

RegionKey = tuple[str, str, str]
"""(namespace, job, region), as in the labels of the PEs' metrics."""


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


@dataclass(frozen=True, slots=True)
class Observations:
    """One refresh: `evaluated_at` is the Unix time that all its queries were evaluated at."""

    evaluated_at: float
    regions: Mapping[RegionKey, RegionObservation]


_INPUTS = {name.value: name for name in Input}


class Gathering:
    """Sorts the rows of one refresh by region and stage, answer by answer."""

    def __init__(self) -> None:
        self.regions: dict[RegionKey, RegionObservation] = {}

    def add(self, rows: Rows) -> None:
        """Take in the answer to one query."""
        for row in rows:
            labels, value = row["metric"], float(row["value"][1])
            key = (labels["namespace"], labels["streams_job"], labels["region"])
            region = self.regions.get(key)
            if region is None:
                region = self.regions[key] = RegionObservation()
            _store(region, _INPUTS[labels[INPUT_LABEL]], labels, value)


def _store(region: RegionObservation, name: Input, labels: Mapping[str, str], value: float) -> None:
    if name in (Input.SAMPLE_TIME, Input.IDLE_SHARE, Input.ELEMENTS, Input.STATE_BYTES):
        region.values[name] = value
        return
    stage = region.stage(labels.get("stage", "0"))
    if name is Input.LAG:
        stage.lag[labels["topic"]] = value
    elif name is Input.PARTITIONS:
        stage.partitions[labels["topic"]] = int(value)
    else:
        stage.values[name] = value
