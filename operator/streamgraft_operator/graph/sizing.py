"""How many PEs suit an application: the heuristic of the instance operator's design ("Application
sizing and resource control").

Threads stand for CPUs, as if every thread were fully occupied. Regions count with one channel, as
their width is set elsewhere; where the job's resources are divided, all first channels take a
share. Of the range that this gives the low end is taken: every PE more is a driver more, and a hop
through Kafka for every record.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from streamgraft_common.quantities import parse
from streamgraft_common.resources import Fusion, ProcessingElementSettings, Resources
from streamgraft_operator.graph.fusion import Stage, fuse, reductions
from streamgraft_operator.graph.logical import LogicalModel

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
    spread = fuse(model, Fusion(type="legacy", channels=fusion.channels))
    together = fuse(model, Fusion(type="automatic", channels=fusion.channels))
    fewest, most = len(together), len(spread)
    if whole := _limit(means.resources):
        shares = dict(_shares(model, fusion, spread, means)) | {fewest: _counted(together, means)}
        cpus = {count: whole / number for count, number in shares.items()}
    else:
        cpus = dict.fromkeys(range(fewest, most + 1), _own_cpus(means))
    counts = range(fewest, most + 1)
    enough = (count for count in counts if count * cpus.get(count, 0) >= min_threads)
    count = next(enough, fewest if whole else most)  # of what is divided, more PEs have no more
    return Sizing(min_threads, max_threads, fewest, most, count)


def _counting(fusion: Fusion, count: int, fewest: int) -> Fusion:
    if count == fewest:
        return fusion.model_copy(update={"type": "automatic"})
    return fusion.model_copy(update={"pe_count": count})


def _own_cpus(means: Means) -> Fraction:
    """Return the CPUs of each PE whose job's resources have no limit of them."""
    slots = Fraction(means.settings.slots or 1)
    if means.resources is not None:
        return slots
    return _limit(means.settings.resources) or slots


def _shares(
    model: LogicalModel, fusion: Fusion, spread: Collection[Stage], means: Means
) -> Iterator[tuple[int, int]]:
    """Yield in how many shares the job's resources are divided, for each number of stages from the
    most to the fewest that are made by joining two at a time."""
    count, shares = len(spread), _counted(spread, means)
    yield count, shares
    for region in reductions(model, fusion):
        count, shares = count - 1, shares - means.widths.get(region or "", 1)
        yield count, shares


def _counted(stages: Iterable[Stage], means: Means) -> int:
    """Return the number of PEs at the first widths."""
    return sum(means.widths.get(stage.region or "", 1) for stage in stages)


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
