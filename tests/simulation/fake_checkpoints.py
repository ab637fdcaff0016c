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

    def next_batch(self, stage: Stage, shard: int) -> int:
        """Return the number of the batch that a query that begins now runs."""
        return self._logged[stage, shard]

    def log(self, stage: Stage, shard: int, batch: int) -> bool:
        """Log a batch that ran; False if another owner has logged it."""
        first = self._logged[stage, shard] == batch
        self._logged[stage, shard] += first
        return first
