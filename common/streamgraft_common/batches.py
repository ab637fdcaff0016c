"""Batches and cuts as functions of sinks get them: their numbers, and whose they are."""

from dataclasses import dataclass
from typing import Self


class Batch(int):
    """The number of a batch of one shard.

    A batch that runs again after a crash has the same number, writer, shard and incarnation.
    """

    writer: str
    """Names the sink and the shard, for as long as the job's name does: `<namespace>.<job>.…`."""
    shard: int
    incarnation: str
    """Changes when the numbers begin anew: the job was submitted again, or restored."""

    def __new__(
        cls, number: int, *, writer: str = "", shard: int = 0, incarnation: str = ""
    ) -> Self:
        """Return the number with what belongs to it."""
        made = super().__new__(cls, number)
        made.writer, made.shard, made.incarnation = writer, shard, incarnation
        return made


@dataclass(frozen=True)
class Cut:
    """What one shard of a sink has written up to a cut of its consistent region."""

    number: int
    """Number of the cut; that of a savepoint of the whole job is 0."""
    savepoint: str
    """Savepoint that holds it."""
    writer: str
    """As of the batches that are in it."""
    shard: int
    incarnation: str
    """As of the batches that are in it."""
    last_batch: int
    """The last batch of this writer and incarnation that is in it; -1 if there is none."""
