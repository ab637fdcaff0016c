"""The checkpoints that all pods of a job share, and the savepoints beside them.

A checkpoint is the log of its shard's batches, and how often each of the keys in it was counted:
every batch has a record of each. Of its files no more is known than that they appear at once.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache

from tests.simulation.applications import adl_of

from streamgraft_common.key_groups import origins
from streamgraft_common.pe_metadata import PeMetadata
from streamgraft_common.resources import SavedStage, SavedState
from streamgraft_common.restore import NotRestorable, match, stage_of

KEYS = 12
"""Numbers of key groups from 2 to 4 divide them evenly; key i is in group i modulo their number."""
Stage = tuple[str, str]
"""uid of the job, folder of the stage's checkpoints: its name, unless it was dropped once."""
Counts = dict[int, int]
"""Key → batches that it was in."""


@dataclass(frozen=True)
class Origin:
    """What a PE knows of its stage."""

    stage: SavedStage
    savepoint: str | None
    """Path of the savepoint that the job started from."""


@cache
def metadata_of(document: str) -> PeMetadata:
    """Return the graph metadata of a PE."""
    return PeMetadata.model_validate_json(document)


@cache
def origin_of(document: str) -> Origin:
    """Return what the graph metadata of a PE says of its stage."""
    metadata = metadata_of(document)
    return Origin(stage_of(metadata, adl_of(metadata.bundle_digest)), metadata.savepoint)


@dataclass
class Checkpoint:
    """The checkpoint of a shard."""

    counts: Counts
    logged: int = 0
    begun: bool = False
    """Whether a batch was begun and not logged."""


@dataclass
class SavedCopies:
    """The copies of the shards of a stage."""

    stage: SavedStage
    counts: dict[int, Counts] = field(default_factory=dict)
    logged: dict[int, int] = field(default_factory=dict)


class FakeCheckpoints:
    """Logs each batch once, for whoever is first: so a second owner of a shard is fenced off.

    As Spark's own log does it (docs/decisions/0008-cheap-batches.md).
    """

    def __init__(self) -> None:
        self._checkpoints: dict[tuple[Stage, int], Checkpoint] = {}
        self._saved: dict[str, dict[str, SavedCopies]] = defaultdict(dict)
        self.damaged: set[str] = set()
        """Paths of savepoints that can't be read any more."""

    def exists(self, stage: Stage, shard: int) -> bool:
        """Return whether a shard has a checkpoint."""
        return (stage, shard) in self._checkpoints

    def create(self, stage: Stage, shard: int, counts: Counts) -> None:
        """Give a shard its checkpoint, unless somebody else was first."""
        self._checkpoints.setdefault((stage, shard), Checkpoint(counts))

    def untouched(self, stage: Stage, shard: int) -> Counts | None:
        """Return the counts in a checkpoint of which no batch is logged yet, else None."""
        checkpoint = self._checkpoints[stage, shard]
        return None if checkpoint.logged else checkpoint.counts

    def next_batch(self, stage: Stage, shard: int) -> int:
        """Begin a batch; return its number."""
        checkpoint = self._checkpoints[stage, shard]
        checkpoint.begun = True
        return checkpoint.logged

    def settle(self, stage: Stage, shard: int) -> None:
        """End what was begun: a query stopped at its batch boundary."""
        if checkpoint := self._checkpoints.get((stage, shard)):
            checkpoint.begun = False

    def is_clean(self, stage: Stage, shard: int) -> bool:
        """Return whether no batch was begun and not logged."""
        checkpoint = self._checkpoints.get((stage, shard))
        return checkpoint is None or not checkpoint.begun

    def log(self, stage: Stage, shard: int, batch: int) -> bool:
        """Log a batch that ran; False if another owner has logged it."""
        checkpoint = self._checkpoints[stage, shard]
        if checkpoint.logged != batch:
            return False
        checkpoint.logged += 1
        for key in checkpoint.counts:
            checkpoint.counts[key] += 1
        return True

    def save(self, savepoint: str, origin: SavedStage, stage: Stage, shard: int) -> Counts:
        """Copy what is logged of a shard into a savepoint, by its path; return the copy."""
        copies = self._saved[savepoint].setdefault(origin.name, SavedCopies(origin))
        checkpoint = self._checkpoints[stage, shard]
        copies.counts[shard], copies.logged[shard] = dict(checkpoint.counts), checkpoint.logged
        return copies.counts[shard]

    def roll_back(self, savepoint: str, stage: Stage, shard: int) -> Checkpoint:
        """Put a copy in the place of a shard's checkpoint; return that. Raises OSError."""
        copies = self._saved.get(savepoint, {}).get(stage[1].partition(".")[0])
        if copies is None or shard not in copies.counts:
            raise OSError(f"there is no copy of shard {shard} of {stage[1]} at {savepoint}")
        fresh = Checkpoint(dict(copies.counts[shard]), copies.logged[shard])
        self._checkpoints[stage, shard] = fresh
        return fresh

    def counts(self, stage: str) -> Counts:
        """Return what is counted in all shards of a stage, by its folder in whichever job's."""
        found = (item for (place, _), item in self._checkpoints.items() if place[1] == stage)
        return {key: count for item in found for key, count in item.counts.items()}

    def remove(self, savepoint: str) -> None:
        """Remove the files of a savepoint."""
        self._saved.pop(savepoint, None)

    def first_counts(self, origin: Origin, shard: int) -> Counts:
        """Return what a shard begins with that has no checkpoint. Raises NotRestorable."""
        groups = origin.stage.shards
        counts = {key: 0 for key in range(KEYS) if key % groups == shard}
        if origin.savepoint is None:
            return counts
        if (copies := self._saved.get(origin.savepoint)) is None:
            raise NotRestorable(f"there is no savepoint {origin.savepoint}")
        if old := match([item.stage for item in copies.values()], origin.stage):
            for group in origins(old.shards, groups, shard):
                found = copies[old.name].counts[group]
                counts |= {key: count for key, count in found.items() if key in counts}
        return counts


def with_state(stage: SavedStage) -> SavedStage:
    """Return a stage as its PEs note it when they copy its checkpoints: its state is by key."""
    state = [SavedState(operator="stateStoreSave", key=stage.key) for _ in stage.stateful]
    return stage.with_state(state)
