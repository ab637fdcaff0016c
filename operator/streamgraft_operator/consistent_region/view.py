"""What the step of a consistent region sees."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from streamgraft_common.resources import (
    ConsistentRegionSpec,
    ConsistentRegionStatus,
    SavepointStatus,
)


@dataclass(frozen=True)
class CutView:
    """A cut's Savepoint."""

    number: int
    name: str
    status: SavepointStatus
    operators: frozenset[str] = frozenset()
    """Whose state it has."""
    fits: bool = True
    """Whether the stages of today could go on from there."""


@dataclass(frozen=True)
class ConsistentRegionView:
    """A region, the Savepoints of its cuts, and the time (Unix seconds)."""

    name: str
    generation: int
    spec: ConsistentRegionSpec
    status: ConsistentRegionStatus
    cuts: Mapping[int, CutView]
    """By number."""
    last_number: int
    """Of a Savepoint of such a name that is there, be it of an earlier job."""
    rollbacks: Mapping[int, CutView]
    """By number."""
    last_rollback: int
    """As last_number."""
    now: float
    going: frozenset[int] = frozenset()
    """Numbers of cuts of this job that are being deleted: they are not in `cuts` any more."""
    taken: str = ""
    """Savepoint of something else that has the name of the cut, or rollback, under way; '' if there
    is none."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """Of its PEs, as far as it goes back for them: a name for each → what it is."""
    let_pass: frozenset[str] = frozenset()
    """Names of those that its policy of now does not go back for."""
    over: frozenset[str] = frozenset()
    """Names of those that are over."""
    unheld: frozenset[str] = frozenset()
    """Names of those of PEs without a shard."""
    requests: Mapping[str, str] = field(default_factory=dict)
    """PE → id of the last cut that its functions asked for."""
    waiting_for: str = ""
    """What has to be before a cut may begin; '' if nothing."""
    held_up_by: str = ""
    """What has to be before a rollback may begin."""
