"""The checkpoints that all pods of a job share: of each shard, the log of its batches."""

from collections import Counter

Stage = tuple[str, str]
"""uid of the job, name of the stage."""


class FakeCheckpoints:
    """Logs each batch once, for whoever is first: so a second owner of a shard is fenced off.

    As Spark's own log does it (docs/decisions/0008-cheap-batches.md).
    """

    def __init__(self) -> None:
        self._logged: Counter[tuple[Stage, int]] = Counter()
        self._begun: set[tuple[Stage, int]] = set()

    def next_batch(self, stage: Stage, shard: int) -> int:
        """Begin a batch; return its number."""
        self._begun.add((stage, shard))
        return self._logged[stage, shard]

    def settle(self, stage: Stage, shard: int) -> None:
        """End what was begun: a query stopped at its batch boundary."""
        self._begun.discard((stage, shard))

    def is_clean(self, stage: Stage, shard: int) -> bool:
        """Return whether no batch was begun and not logged; only then it can be copied."""
        return (stage, shard) not in self._begun

    def log(self, stage: Stage, shard: int, batch: int) -> bool:
        """Log a batch that ran; False if another owner has logged it."""
        first = self._logged[stage, shard] == batch
        self._logged[stage, shard] += first
        return first
