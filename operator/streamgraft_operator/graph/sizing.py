"""How many PEs suit an application: the heuristic of the instance operator's design ("Application
sizing and resource control").

Threads stand for CPUs, as if every thread were fully occupied. Regions count with one channel, as
their width is set elsewhere. Of the range that this gives the low end is taken: every PE more is a
driver more, and a hop through Kafka for every record.
"""

import math
from dataclasses import dataclass

from streamgraft_operator.graph.fusion import fuse
from streamgraft_operator.graph.logical import LogicalModel


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


def size(model: LogicalModel, cpu_limit: float) -> Sizing:
    """Return the size of an application whose pods may use `cpu_limit` cores each.

    Enough PEs that the threads it always has can all be busy, no more than those it can occupy.
    """
    sources = [op for op in model.operators.values() if op.kind in ("kafka-source", "source")]
    computing = [op for op in model.operators.values() if op.kind in ("function", "split", "sink")]
    min_threads = len(sources) + _entries(model)
    max_threads = min_threads + len(computing)
    fewest, most = len(fuse(model, "automatic")), len(fuse(model, "legacy"))
    wanted = math.ceil(min_threads / cpu_limit)
    return Sizing(min_threads, max_threads, fewest, most, max(fewest, min(wanted, most)))


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
