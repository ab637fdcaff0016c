"""Copies of shards in a repository: sent there from the volume, fetched if they are not on it.

See streamgraft_common.repositories.manifest for how they lie there.
"""

import errno
import hashlib
import logging
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from streamgraft_common.repositories import (
    Missing,
    RepositoryUnavailable,
    Store,
    Stored,
    manifest,
)
from streamgraft_common.repositories.manifest import (
    PIECE_BYTES,
    UPLOAD_SECONDS,
    Manifest,
    Piece,
    SavedFile,
    Share,
)
from streamgraft_common.resources import Saving
from streamgraft_pe_runtime.checkpoint_files import Beside, link, write
from streamgraft_pe_runtime.protocol import CopyDamaged
from streamgraft_pe_runtime.upkeep import Upkeep

log = logging.getLogger(__name__)

LISTED_SECONDS = 60.0
"""For so long the copies of one request go by one listing."""
_AT_A_TIME = 4
_Sums = dict[tuple[int, int, int, int], list[str]]
"""Hashes of the pieces of files, which Spark never changes, by device, inode, size and time."""
_Known = dict[str, tuple[Piece, float]]
"""Blobs by hash, and since when they are there and will stay for UPLOAD_SECONDS."""


@dataclass(frozen=True)
class _Listed:
    """What a namespace had."""

    at: float
    """When it was asked."""
    found: manifest.Contents
    blobs: frozenset[str]
    """Their names."""


class _NoManifest(CopyDamaged):
    """What a copy was made as is not known."""


class _Fetched(Exception):
    """What is fetched is there already."""


class Repository:
    """The copies of a namespace. All calls block, and raise RepositoryUnavailable."""

    def __init__(
        self,
        store: Store,
        namespace: str,
        clock: Callable[[], float] = time.monotonic,
        upkeep: Upkeep | None = None,
    ) -> None:
        self._store = store
        self._upkeep = upkeep
        self._namespace = namespace
        self._clock = clock
        self._sums: dict[tuple[str, int], _Sums] = {}
        """Of the last copy of each stage and shard."""
        self._sent: _Known = {}
        """Blobs that we wrote."""
        self._fenced = False

    def upload(self, copies: Mapping[Share, Path], stage: str) -> None:
        """Store copies of shards, but those that are there. `stage`: what their stage is, JSON."""
        self._check_fence()
        listed: _Listed | None = None
        for share, folder in copies.items():
            # To list a namespace takes as long as it is large, and a region stands still meanwhile.
            if listed is None or self._clock() - listed.at > LISTED_SECONDS:
                listed = self._list()
            self._upload(share, folder, stage, listed)

    def keep_up(self, request: Saving) -> None:
        """Remove what nobody needs any more, beside everything else, if that is ours to do."""
        if self._upkeep:
            self._upkeep.begin(request)

    def _upload(self, share: Share, folder: Path, stage: str, listed: _Listed) -> None:
        key = share.key(self._namespace)
        if share in listed.found.shares:  # if by a launch that was cut off, perhaps not everywhere
            self._store.create(key, self._store.get(key))
            return
        known = self._known(share, listed)
        sums, new = self._sums.get((share.stage, share.shard), {}), _Sums()
        files = sorted(item for item in folder.rglob("*") if item.is_file())

        def send(file: Path) -> SavedFile:
            return self._send(file, str(file.relative_to(folder)), known, sums, new)

        with ThreadPoolExecutor(_AT_A_TIME, "upload") as threads:
            saved = list(threads.map(send, files))
        self._sums[share.stage, share.shard] = new
        used = {piece.sha256 for item in saved for piece in item.pieces}
        if (
            self._clock() - min((known[item][1] for item in used), default=listed.at)
            > UPLOAD_SECONDS
        ):
            self._sent.clear()
            raise RepositoryUnavailable(
                f"{folder} took longer than {UPLOAD_SECONDS:.0f} s to store: give the job a faster"
                " repository, or more and smaller shards"
            )
        folders = sorted(str(item.relative_to(folder)) for item in folder.rglob("*/"))
        document = Manifest(files=saved, folders=folders).model_dump_json(by_alias=True)
        described = (share.savepoint, share.uid, share.stage)
        self._store.put(manifest.stage_key(self._namespace, *described), stage.encode())
        if not self._store.create(key, document.encode()):
            log.warning("%s was stored by another launch at the same time: that one counts", key)

    def fetch(
        self, savepoint: str, stage: str, shard: int, folder: Path, uid: str | None = None
    ) -> None:
        """Make the copy of a shard on the volume what it was made as. Raises CopyDamaged.

        `uid`: of the savepoint, where the volume says it; the newest of the name counts otherwise.
        One that is there is left as it is if the repository does not answer, or has no manifest.
        """
        try:
            self._fetch(self._share(savepoint, stage, shard, uid), folder)
        except (_NoManifest, RepositoryUnavailable) as error:
            if not folder.is_dir():
                raise
            log.warning("%s can't be compared with the repository: %s", folder, error)

    def describe(self, savepoint: str, file: str, folder: Path, its: str | None = None) -> bool:
        """Write what a savepoint's stages are, and one file of each shard, into a folder.

        `its`: the uid, as for `fetch`. Return whether there is such a savepoint.
        Raises CopyDamaged.
        """
        found = manifest.read(self._namespace, self._entries())
        if (uid := found.alive(savepoint, its)) is None:
            return False
        for name, other, stage in found.stages:
            if (name, other) == (savepoint, uid):
                (folder / stage).mkdir()
                key = manifest.stage_key(self._namespace, savepoint, uid, stage)
                write(folder / stage / manifest.STAGE, self._store.get(key))
        for share in found.shares:
            if (share.savepoint, share.uid) == (savepoint, uid):
                place = folder / share.stage / str(share.shard)
                for item in self._manifest(share).files:
                    if item.path == file:
                        self._restore(item, place, place)
        return True

    def _share(self, savepoint: str, stage: str, shard: int, its: str | None) -> Share:
        found = manifest.read(self._namespace, self._entries())
        if (uid := found.alive(savepoint, its)) is None:
            name = f"{savepoint}/{its}" if its else savepoint
            raise _NoManifest(f"there is no {name} in the repository: was it deleted?")
        return Share(savepoint, uid, stage, shard)

    def _manifest(self, share: Share) -> Manifest:
        key = share.key(self._namespace)
        try:
            return Manifest.model_validate_json(self._store.get(key))
        except Missing:
            raise _NoManifest(f"there is no {key} in the repository: was it deleted?") from None
        except ValidationError as error:
            raise _NoManifest(f"{key} in the repository is no manifest: {error}") from error

    def _fetch(self, share: Share, folder: Path) -> None:
        wanted = self._manifest(share)
        if folder.is_dir() and self._is_whole(folder, wanted):
            return
        log.warning("%s is missing or damaged: fetching it from the repository", folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        aside = folder.with_name(f".{folder.name}-damaged-{uuid.uuid4().hex}")
        try:
            with suppress(_Fetched), Beside(folder) as copy:
                for name in wanted.folders:
                    (copy / name).mkdir(parents=True, exist_ok=True)
                with ThreadPoolExecutor(_AT_A_TIME, "fetch") as threads:
                    list(threads.map(lambda item: self._restore(item, folder, copy), wanted.files))
                self._make_way(folder, wanted, aside)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            log.info("%s was fetched by another processing element at the same time", folder)
        shutil.rmtree(aside, ignore_errors=True)

    def _make_way(self, folder: Path, wanted: Manifest, aside: Path) -> None:
        """Rename a damaged copy, if there is one. Raises _Fetched if there is a whole one.

        Others may do the same: what one of them has put in its place, and works on, has to stay.
        """
        while folder.is_dir():
            with suppress(FileNotFoundError):  # another has renamed it
                judged = folder.stat().st_ino
                if self._is_whole(folder, wanted):
                    raise _Fetched
                # Removed bit by bit, what a crash leaves would look like a copy.
                if folder.stat().st_ino == judged:
                    folder.rename(aside)
                    if aside.stat().st_ino != judged:
                        aside.rename(folder)

    def _restore(self, item: SavedFile, old: Path, copy: Path) -> None:
        target = copy / item.path
        target.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):  # another makes way for what it has fetched
            if self._has(old / item.path, item):
                link(str(old / item.path), str(target))
                return
        with target.open("wb") as file:
            for piece in item.pieces:
                file.write(self._blob(piece, item.path))

    def _blob(self, piece: Piece, path: str) -> bytes:
        key = manifest.blobs(self._namespace) + piece.name
        try:
            data = self._store.get(key)
        except Missing:
            raise CopyDamaged(f"blob {piece.name} of {path} is missing") from None
        if hashlib.sha256(data).hexdigest() != piece.sha256:
            with suppress(RepositoryUnavailable):
                self._store.delete([key])  # so that later copies do not use it, but send it anew
            raise CopyDamaged(f"blob {piece.name} of {path} is damaged")
        return data

    def _is_whole(self, folder: Path, wanted: Manifest) -> bool:
        there = {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}
        if there != {item.path for item in wanted.files}:
            return False
        try:
            return all(self._has(folder / item.path, item) for item in wanted.files)
        except FileNotFoundError:  # another makes way for what it has fetched
            return False

    def _has(self, file: Path, item: SavedFile) -> bool:
        """Return whether a file is what was stored; it is read, whatever we know of it."""
        if not file.is_file():
            return False
        expected = [piece.sha256 for piece in item.pieces]
        return [hashlib.sha256(data).hexdigest() for data in _pieces(file)] == expected

    def _send(self, file: Path, path: str, known: _Known, sums: _Sums, new: _Sums) -> SavedFile:
        status = file.stat()
        seen = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        hashes = sums.get(seen, [])
        if not (hashes and known.keys() >= set(hashes)):
            hashes = [self._stored(data, known) for data in _pieces(file)]
        new[seen] = hashes
        return SavedFile(path=path, pieces=[known[sha][0] for sha in hashes])

    def _stored(self, data: bytes, known: _Known) -> str:
        """Return the hash of a piece, which is known then."""
        sha = hashlib.sha256(data).hexdigest()
        if sha not in known:
            piece = Piece(sha256=sha, size=len(data), upload=uuid.uuid4().hex[:12])
            at = self._clock()
            self._store.put(manifest.blobs(self._namespace) + piece.name, data)
            known[sha] = self._sent[sha] = (piece, at)
        return sha

    def _known(self, share: Share, listed: _Listed) -> _Known:
        known = {
            sha: sent
            for sha, sent in self._sent.items()
            if listed.at - sent[1] < UPLOAD_SECONDS / 2
        }
        self._sent = dict(known)
        if (before := listed.found.before(share)) is not None:
            # It may go at this moment, or be damaged.
            with suppress(Missing, ValidationError):
                data = self._store.get(before.key(self._namespace))
                base = Manifest.model_validate_json(data)
                known |= {piece.sha256: (piece, listed.at) for piece in base.blobs()}
        return {
            sha: (piece, at)
            for sha, (piece, at) in known.items()
            if at > listed.at or piece.name in listed.blobs
        }

    def _list(self) -> _Listed:
        at = self._clock()
        found = manifest.read(self._namespace, self._entries())
        blobs = self._store.keys(manifest.blobs(self._namespace))
        return _Listed(at, found, frozenset(item.key.rpartition("/")[2] for item in blobs))

    def _entries(self) -> list[Stored]:
        return self._store.keys(manifest.savepoints(self._namespace))

    def _check_fence(self) -> None:
        """Raise RepositoryUnavailable if the store lets two writers create one key."""
        if self._fenced:
            return
        key = f"{self._namespace}/fence"
        self._store.create(key, b"")
        if self._store.create(key, b""):
            raise RepositoryUnavailable(
                "the repository ignores conditional writes (If-None-Match): use another one, or"
                " another version of it"
            )
        self._fenced = True


def _pieces(file: Path) -> Iterator[bytes]:
    with file.open("rb") as opened:
        while data := opened.read(PIECE_BYTES):
            yield data
