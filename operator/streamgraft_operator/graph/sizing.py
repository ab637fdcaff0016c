"""How many PEs suit an application: the heuristic of the instance operator's design ("Application
sizing and resource control").

Threads stand for CPUs, as if every thread were fully occupied. Regions count with one channel, as
their width is set elsewhere; where the job's resources are divided, all first channels take a
share. Of the range that this gives the low end is taken: every PE more is a driver more, and a hop
through Kafka for every record.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from streamgraft_common.quantities import parse
from streamgraft_common.resources import Fusion, ProcessingElementSettings, Resources
from streamgraft_operator.graph.fusion import fuse
from streamgraft_operator.graph.logical import LogicalModel
from streamgraft_operator.graph.model import GraphError

_SOURCES = ("kafka-source", "source", "import")


@dataclass(frozen=True)
class Sizing:
    """An application's need of threads, and of PEs: those outside of regions plus those of one
    channel of each region."""

    min_threads: int
    """Threads that it always has: its sources, and the streams that enter a region, whose records
    come through Kafka."""
    max_threads: int
    """Threads that it can occupy: the least, and one for each operator that only computes."""
    fewest: int
    """PEs if all is fused that can be."""
    most: int
    """PEs if nothing is fused."""
    pe_count: int
    """The default number of PEs."""


@dataclass(frozen=True)
class Means:
    """What PEs are sized by: the settings of each, or else what the job's resources divide to."""

    settings: ProcessingElementSettings
    resources: Resources | None = None
    """Of the whole job, divided among its PEs at the first widths."""
    widths: Mapping[str, int] = field(default_factory=dict)
    """First widths of all regions, by name."""


def sized(model: LogicalModel, fusion: Fusion, means: Means) -> Fusion:
    """Return the fusion with its number of PEs: the default if it is `manual` and says none."""
    if fusion.type != "manual" or fusion.pe_count is not None:
        return fusion
    found = size(model, fusion, means)
    return _counting(fusion, found.pe_count, found.fewest)


def size(model: LogicalModel, fusion: Fusion, means: Means) -> Sizing:
    """Return the size of an application.

    Enough PEs that the threads it always has can all be busy within a PE's CPU limit; a PE without
    one is taken to be limited by its task slots.
    """
    sources = [op for op in model.operators.values() if op.kind in _SOURCES]
    computing = [op for op in model.operators.values() if op.kind in ("function", "split", "sink")]
    min_threads = len(sources) + _entries(model)
    max_threads = min_threads + len(computing)
    fewest = len(fuse(model, Fusion(type="automatic", channels=fusion.channels)))
    most = len(fuse(model, Fusion(type="legacy", channels=fusion.channels)))
    enough = (
        count
        for count in range(fewest, most + 1)
        if count * _cpus(model, _counting(fusion, count, fewest), means) >= min_threads
    )
    count = next(enough, _otherwise(means, fewest, most))
    return Sizing(min_threads, max_threads, fewest, most, count)


def _counting(fusion: Fusion, count: int, fewest: int) -> Fusion:
    if count == fewest:
        return fusion.model_copy(update={"type": "automatic"})
    return fusion.model_copy(update={"pe_count": count})


def _otherwise(means: Means, fewest: int, most: int) -> int:
    """Return the number of PEs if none is enough: of what is divided, more PEs have no more."""
    return fewest if _limit(means.resources) else most


def _cpus(model: LogicalModel, fusion: Fusion, means: Means) -> Fraction:
    """Return the CPUs of each PE if the application is fused like this."""
    if whole := _limit(means.resources):
        try:
            stages = fuse(model, fusion)
        except GraphError:  # the application can't be spread over so many
            return Fraction(0)
        return whole / sum(means.widths.get(stage.region or "", 1) for stage in stages)
    if means.resources is not None:
        return Fraction(means.settings.slots or 1)
    return _limit(means.settings.resources) or Fraction(means.settings.slots or 1)


def _limit(resources: Resources | None) -> Fraction | None:
    limit = resources.limits.get("cpu") if resources else None
    return parse(limit) if limit else None


def _entries(model: LogicalModel) -> int:
    """Return how many streams enter a region, once for each region."""
    return len(
        {
            (stream, reader.region)
            for reader in model.operators.values()
            for stream in reader.inputs
            if reader.region is not None
            and model.operators[model.producers[stream]].region != reader.region
        }
    )
