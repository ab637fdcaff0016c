"""How many PEs suit an application: the heuristic of the instance operator's design ("Application
sizing and resource control").

Threads stand for CPUs, as if every thread were fully occupied. Regions count with one channel, as
their width is set elsewhere. Of the range that this gives the low end is taken: every PE more is a
driver more, and a hop through Kafka for every record.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from streamgraft_common.resources import Fusion, ProcessingElementSettings
from streamgraft_operator.graph.fusion import fuse
from streamgraft_operator.graph.logical import LogicalModel
from streamgraft_operator.graph.quantities import parse


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


def sized(model: LogicalModel, fusion: Fusion, settings: ProcessingElementSettings) -> Fusion:
    """Return the fusion with its number of PEs: the default if it is `manual` and says none."""
    if fusion.type != "manual" or fusion.pe_count is not None:
        return fusion
    found = size(model, fusion, settings)
    if found.pe_count == found.fewest:
        return fusion.model_copy(update={"type": "automatic"})
    return fusion.model_copy(update={"pe_count": found.pe_count})


def size(model: LogicalModel, fusion: Fusion, settings: ProcessingElementSettings) -> Sizing:
    """Return the size of an application.

    Enough PEs that the threads it always has can all be busy within a PE's CPU limit; a PE without
    one is taken to be limited by its task slots.
    """
    sources = [op for op in model.operators.values() if op.kind in ("kafka-source", "source")]
    computing = [op for op in model.operators.values() if op.kind in ("function", "split", "sink")]
    min_threads = len(sources) + _entries(model)
    max_threads = min_threads + len(computing)
    fewest = len(fuse(model, Fusion(type="automatic", channels=fusion.channels)))
    most = len(fuse(model, Fusion(type="legacy", channels=fusion.channels)))
    wanted = math.ceil(min_threads / _cpus(settings))
    return Sizing(min_threads, max_threads, fewest, most, max(fewest, min(wanted, most)))


def _cpus(settings: ProcessingElementSettings) -> Fraction:
    limit = settings.resources.limits.get("cpu") if settings.resources else None
    return parse(limit) if limit else Fraction(settings.slots or 1)


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
