"""How many PEs a record passes on its way out, and how long that takes at least. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from operator import attrgetter

from streamgraft.cli._plan_queries import StageQueries
from streamgraft_common.pe_metadata import PeMetadata

_REAL_TIME_SECONDS = 0.03
"""From a record into a PE in real-time mode to the commit of what comes of it."""


@dataclass(frozen=True)
class Way:
    """The slowest way of records to a stage whose output leaves the job."""

    stages: tuple[str, ...]
    """Those that they pass, first to last; each but the first is a hop over Kafka."""
    typical_seconds: float
    longest_seconds: float
    """For a record that comes just behind each trigger."""

    def __str__(self) -> str:
        count = len(self.stages) - 1
        hops = "1 hop" if count == 1 else f"{count or 'no'} hops"
        return (
            f"Way {' > '.join(self.stages)}: {hops}, about {self.typical_seconds:.2g} s,"
            f" {self.longest_seconds:.2g} s at most while nothing waits"
        )


def ways(pes: Iterable[PeMetadata], queries: Iterable[StageQueries]) -> list[Way]:
    """Return the way to each stage whose output leaves the job, by its last stage's name.

    `queries`: those of the stages.
    """
    stages = {pe.stage_name: pe for pe in pes}
    running = {item.stage: item for item in queries}
    makers = {
        port.topic: name for name, pe in stages.items() for port in pe.outputs if not port.external
    }

    @cache
    def way(name: str) -> Way:
        topics = [port.topic for port in stages[name].inputs if not port.external]
        above = (way(makers[topic]) for topic in topics if topic in makers)
        before = max(above, key=attrgetter("longest_seconds"), default=Way((), 0.0, 0.0))
        typical, longest = _seconds(running[name])
        return Way(
            (*before.stages, name),
            before.typical_seconds + typical,
            before.longest_seconds + longest,
        )

    return [way(name) for name in sorted(stages) if _leaves(stages[name])]


def _leaves(pe: PeMetadata) -> bool:
    return not pe.outputs or any(port.external for port in pe.outputs)


def _seconds(stage: StageQueries) -> tuple[float, float]:
    """Return what a stage takes: half of what is between triggers, or all of it, and a batch."""
    if stage.real_time:
        return _REAL_TIME_SECONDS, _REAL_TIME_SECONDS
    usual, longest = stage.usual_seconds / 2, stage.longest_seconds
    return usual + stage.batch_seconds, longest + stage.batch_seconds
