"""How copies are laid out in a repository, and what of it is garbage. Pure.

    <namespace>/savepoints/<name>/<uid>/<stage>/<shard>     the manifest of a shard's copy
    <namespace>/savepoints/<name>/<uid>/<stage>/stage.json  what the stage is
    <namespace>/savepoints/<name>/<uid>/removed             nobody needs that savepoint any more
    <namespace>/blobs/<SHA-256>-<upload>                    a piece of a file

A copy is there if its manifest is: that is created last, once, and never changed. Copies share
blobs, so that what a state has not changed since the copy before is not sent again. A blob is
garbage if no manifest names it. What is uploaded meanwhile is safe without locks, since

- a copy uses only blobs that were named, or new, when it began, and gives up after UPLOAD_SECONDS;
- a savepoint that is removed is only marked, and its manifests count for GRACE_SECONDS more;
- blobs that nobody names are left alone for the same time;
- no blob's name is used twice, so one that is to go is not written again meanwhile.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from streamgraft_common.repositories.store import Stored
from streamgraft_common.resources.base import Model

FORMAT = 1
PIECE_BYTES = 8 * 2**20
"""Files are cut into pieces of this size: so much memory an upload or a download takes for each."""
UPLOAD_SECONDS = 1800.0
GRACE_SECONDS = 3600.0
"""Clocks may differ by the difference of the two."""
COLLECT_SECONDS = 600
"""From one collection in a namespace to the next, at least."""
REMOVED = "removed"
STAGE = "stage.json"


class Piece(Model):
    """A part of a file."""

    sha256: str
    size: int
    upload: str
    """Tells the blob from others of the same content."""

    @property
    def name(self) -> str:
        """The name of its blob."""
        return f"{self.sha256}-{self.upload}"


class SavedFile(Model):
    """A file of a copy."""

    path: str
    """Below the copy's folder."""
    pieces: list[Piece] = []
    """In order; none of an empty file."""


class Manifest(Model):
    """The copy of one shard."""

    format: int = FORMAT
    files: list[SavedFile]
    folders: list[str] = []
    """Folders, for some of them are empty."""

    @property
    def size_bytes(self) -> int:
        """Size of all files."""
        return sum(piece.size for item in self.files for piece in item.pieces)

    def blobs(self) -> Iterator[Piece]:
        """Yield all pieces."""
        return (piece for item in self.files for piece in item.pieces)


@dataclass(frozen=True)
class Share:
    """A shard's part of a savepoint."""

    savepoint: str
    uid: str
    stage: str
    shard: int

    def key(self, namespace: str) -> str:
        """Return the key of its manifest."""
        return f"{savepoints(namespace)}{self.savepoint}/{self.uid}/{self.stage}/{self.shard}"


@dataclass(frozen=True)
class Contents:
    """What keys below `savepoints/` say, as far as they are ours."""

    shares: dict[Share, float]
    """When each was written (Unix seconds)."""
    stages: dict[tuple[str, str, str], float]
    """Savepoint, uid and stage that is described."""
    removed: dict[tuple[str, str], float]
    """Savepoints and uids that are marked, and since when."""

    def alive(self, savepoint: str, uid: str | None = None) -> str | None:
        """Return the uid of a savepoint that is not removed, the newest one if there are more.

        `uid`: the only one that counts, where that is known.
        """
        found = [
            (written, share.uid)
            for share, written in self.shares.items()
            if share.savepoint == savepoint and uid in (None, share.uid)
            if (savepoint, share.uid) not in self.removed
        ]
        return max(found)[1] if found else None

    def before(self, share: Share) -> Share | None:
        """Return the newest other copy of a shard that is not removed."""
        found = [
            (written, other)
            for other, written in self.shares.items()
            if (other.stage, other.shard) == (share.stage, share.shard) and other != share
            if (other.savepoint, other.uid) not in self.removed
        ]
        return max(found, key=lambda item: item[0])[1] if found else None

    def over(self, now: float) -> set[tuple[str, str]]:
        """Return the removed savepoints whose manifests do not count any more."""
        return {found for found, at in self.removed.items() if now - at > GRACE_SECONDS}


def savepoints(namespace: str) -> str:
    """Return what the keys of all savepoints of a namespace begin with."""
    return f"{namespace}/savepoints/"


def blobs(namespace: str) -> str:
    """Return what the keys of all blobs of a namespace begin with."""
    return f"{namespace}/blobs/"


def removed_key(namespace: str, savepoint: str, uid: str) -> str:
    """Return the key of the mark of a savepoint that nobody needs."""
    return f"{savepoints(namespace)}{savepoint}/{uid}/{REMOVED}"


def stage_key(namespace: str, savepoint: str, uid: str, stage: str) -> str:
    """Return the key of what a stage is."""
    return f"{savepoints(namespace)}{savepoint}/{uid}/{stage}/{STAGE}"


def read(namespace: str, entries: Iterable[Stored]) -> Contents:
    """Return what the keys of a namespace's savepoints say."""
    found = Contents({}, {}, {})
    for entry in entries:
        match entry.key.removeprefix(savepoints(namespace)).split("/"):
            case [savepoint, uid, mark] if mark == REMOVED:
                found.removed[savepoint, uid] = entry.modified
            case [savepoint, uid, stage, last] if last == STAGE:
                found.stages[savepoint, uid, stage] = entry.modified
            case [savepoint, uid, stage, last] if last.isdecimal():
                found.shares[Share(savepoint, uid, stage, int(last))] = entry.modified
    return found


def garbage(entries: Iterable[Stored], named: Collection[str], now: float) -> list[str]:
    """Return the keys of blobs that may go. `named`: names of those that a manifest has."""
    return [
        entry.key
        for entry in entries
        if now - entry.modified > GRACE_SECONDS and entry.key.rpartition("/")[2] not in named
    ]
