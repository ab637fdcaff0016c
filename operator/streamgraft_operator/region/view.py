"""What the region's step sees of the world: values made from resources, nothing remembered."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from streamgraft_common.resources import ParallelRegionStatus, SavepointStatus
from streamgraft_common.resources.parallel_region import Strategy
from streamgraft_operator.pe.view import PeView


@dataclass(frozen=True)
class RegionView:
    """A region, its PEs and the time."""

    job: str
    region: str
    generation: int
    """`metadata.generation` of the ParallelRegion."""
    width: int
    """Wanted width."""
    max_width: int
    stages: int
    first_pe_id: int
    status: ParallelRegionStatus
    pes: tuple[PeView, ...]
    """Those that exist."""
    now: float
    """Unix time."""
    deadline_seconds: float = 300.0
    """For new channels to become ready, and then for moved shards to run."""
    strategy: Strategy = "handover"
    """How a width change is made."""
    parked: frozenset[int] = frozenset()
    """Stages that hold no shards while a savepoint is taken."""
    held_back: bool = False
    """A savepoint that has stages of the region is under way, whether or not they stand still."""
    parked_until: float = 0.0
    """When stages last went on behind a savepoint (Unix time), now while they are held back:
    nothing is late for its sake."""
    may_sleep: bool = False
    """Whether width 0 may be wanted."""
    starts: int | None = None
    """Channels that may become warm at a time; None: any number."""
    joint: frozenset[int] = frozenset()
    """Stages in which a PE runs one query over all of its shards, which starts again with each
    move."""
    savepoints: Mapping[str, SavepointStatus] = field(default_factory=dict)
    """Savepoints of width changes of the region, by name."""
