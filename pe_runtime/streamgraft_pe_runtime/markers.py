"""Offsets behind the last record that nobody can read: ends of transactions, aborted records. Pure.

In real-time mode a batch's position is that of the last record that it read, so what has been read
to its end would have a lag for ever. In micro-batches Spark's positions are past them.
"""

Partition = tuple[str, int]


class Markers:
    """Of all partitions that a PE reads."""

    def __init__(self) -> None:
        self._seen: dict[Partition, tuple[int, int]] = {}
        self._looked: dict[Partition, tuple[int, int]] = {}
        self._past: dict[Partition, tuple[int, int]] = {}

    def past(self, key: Partition, position: int) -> int:
        """Return a position without what nobody can read between it and the end."""
        begin, end = self._past.get(key, (position, position))
        return end if begin == position else position

    def wants_look(self, key: Partition, position: int, end: int) -> bool:
        """Return whether to find out if there are records: once, if nothing has moved recently."""
        before, self._seen[key] = self._seen.get(key), (position, end)
        still = before == (position, end) != self._looked.get(key)
        return still and 0 <= position < end

    def looked(self, key: Partition, position: int, end: int, *, records: bool) -> None:
        """Take note of whether there are records between a position and the end."""
        self._looked[key] = (position, end)
        if not records:
            self._past[key] = (position, end)
