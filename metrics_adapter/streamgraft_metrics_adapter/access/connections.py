"""Which connections stay open when there are too many: new ones come in, idle ones go.

Health probes and the API server always find room. An idle connection costs nothing but its place,
and whoever is closed connects again; what is under way is never cut off.
"""

from typing import Protocol

CONNECTIONS = 512
"""Connections in all, those of the API server's front proxy excepted."""
PER_ADDRESS = 128


class Connection(Protocol):
    """An open connection."""

    @property
    def is_busy(self) -> bool:
        """Whether a request is under way."""

    def close(self) -> None:
        """Close it."""


class Connections:
    """All open connections by the address that they come from, the oldest first."""

    def __init__(self) -> None:
        self._open: dict[str, dict[Connection, None]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._open.values()))

    def add(self, address: str, connection: Connection) -> None:
        """Take in a connection; an idle one has to go for it if there are too many."""
        found = self._open.setdefault(address, {})
        found[connection] = None
        if len(found) > PER_ADDRESS:
            self._close_one(address)
        elif len(self) > CONNECTIONS:
            self._close_one(max(self._open, key=lambda other: len(self._open[other])))

    def remove(self, address: str, connection: Connection) -> None:
        """Forget a connection."""
        found = self._open.get(address, {})
        found.pop(connection, None)
        if not found:
            self._open.pop(address, None)

    def _close_one(self, address: str) -> None:
        """Close the oldest idle connection of an address, or the newest if none is idle."""
        found = self._open[address]
        *older, newest = found
        chosen = next((each for each in older if not each.is_busy), newest)
        self.remove(address, chosen)
        chosen.close()
