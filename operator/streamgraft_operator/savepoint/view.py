"""What a savepoint's step looks at: the savepoint, the stages of its job, the time."""

from collections.abc import Mapping
from dataclasses import dataclass

from streamgraft_common.resources import (
    CheckpointRepository,
    SavedStage,
    SavedState,
    SavepointSpec,
    SavepointStatus,
)
from streamgraft_operator.events import Event


@dataclass(frozen=True)
class StageView:
    """One stage of what is saved."""

    stage: SavedStage
    upstream: frozenset[str]
    """Stages whose output it reads, as far as they are saved, too."""
    stopped: bool
    """Each of its shards has a PE, and none runs, or may still run, one."""
    clean: bool = False
    """Each of its shards was let go of between two batches, and was not taken up since."""
    running: bool = False
    """Each of its shards runs."""
    drained: bool = False
    """It has read its inputs to their ends; known once its upstream stands still."""
    saved: frozenset[int] = frozenset()
    """Shards whose copy is there."""
    commits: bool = False
    """Whether a sink in it makes final what is in the cut."""
    committed: bool = False
    """Whether it has."""
    size_bytes: int = 0
    """Size of these copies."""
    unclean: int = 0
    """Those of them whose last batch was cut off, so that it will run again."""
    state: list[SavedState] | None = None
    """What the state in them consists of, if that was noted."""
    message: str = ""
    """Why copying fails."""
    damaged: bool = False
    """Whether trying again does not help: Saved.damaged."""


@dataclass(frozen=True)
class JobFacts:
    """What a savepoint remembers of its job."""

    job_spec: Mapping[str, object]
    generation_id: int
    content_id: str
    bundle_digest: str
    widths: Mapping[str, int]
    repository: CheckpointRepository
    """In effect: what the job says of it, or else the installation."""
    created: float = 0.0
    """When it was created (Unix seconds)."""


@dataclass(frozen=True)
class SavepointView:
    """A savepoint, its job's stages and the time (Unix seconds)."""

    name: str
    generation: int
    spec: SavepointSpec
    status: SavepointStatus
    created: float
    stages: tuple[StageView, ...]
    facts: JobFacts | None
    """None if the job can't be saved."""
    now: float
    problem: str = ""
    """Why the job can't be saved at all; '' if it can."""
    waiting_for: str = ""
    """What has to end before the first stage may be stopped; '' if nothing."""
    ends: Mapping[str, list[int]] | None = None
    """Rollbacks: where the topics between the stages end, once nobody can write to them."""
    abandoned: str = ""
    """Why nobody is left who reads to the end, or copies, what some PE had; '' if all are there."""


@dataclass(frozen=True)
class SavepointDecision:
    """What should be done."""

    status: SavepointStatus
    """To be written."""
    events: tuple[Event, ...] = ()
    """To be recorded then."""
