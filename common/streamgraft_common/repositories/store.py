"""What a repository is kept in: a store of bytes by keys, which knows conditional writes.

Keys are paths with slashes. No renames are assumed, no folders, and of two writers that create one
key at most one succeeds: that is the fence.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

Credentials = Mapping[str, str]
"""Keys of a Secret and their texts. For S3 `access-key-id`, `secret-access-key`, `session-token`
and `ca.crt`; for Redis those that its settings name."""


class RepositoryUnavailable(OSError):
    """A repository does not answer, or refuses us; the message says which, and what to look at."""


class Missing(Exception):
    """There is nothing of a key."""


@dataclass(frozen=True)
class Stored:
    """A key, and when it was written (Unix seconds)."""

    key: str
    modified: float


class Store(Protocol):
    """Bytes by keys. All calls block, and raise RepositoryUnavailable."""

    def put(self, key: str, data: bytes) -> None:
        """Write, whatever was there."""

    def create(self, key: str, data: bytes) -> bool:
        """Write if there is nothing of the key; False if there is."""

    def get(self, key: str) -> bytes:
        """Return what was written. Raises Missing."""

    def keys(self, prefix: str, *, complete: bool = False) -> list[Stored]:
        """Return all keys that begin so; `prefix` ends in a slash.

        `complete`: rather raise RepositoryUnavailable than leave out what a store of several
        servers had to keep on fewer of them, after one had died amid writing it.
        """

    def delete(self, keys: Sequence[str]) -> None:
        """Remove what is there of them, everywhere."""
