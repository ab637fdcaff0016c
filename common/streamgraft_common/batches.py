"""The number of a micro-batch, as functions of sinks get it, and whose batch it is."""

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
