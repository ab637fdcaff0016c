"""A store in a folder, such as one of another volume than that of the checkpoints."""

import os
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from streamgraft_common.repositories.store import Missing, RepositoryUnavailable, Stored

ABANDONED_SECONDS = 3600.0
"""Who has not put a file in its place by then has died: a file is a piece of some MiB at most."""


class FileStore:
    """Each key is a file, written beside its place and put there whole."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, key: str, data: bytes) -> None:
        """Write, whatever was there."""
        self._place(key, data, only_new=False)

    def create(self, key: str, data: bytes) -> bool:
        """Write if there is nothing of the key: link(2) makes a name or fails."""
        return self._place(key, data, only_new=True)

    def get(self, key: str) -> bytes:
        """Return what was written. Raises Missing."""
        try:
            return (self._root / key).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            if not self._root.is_dir():
                raise RepositoryUnavailable(f"there is no folder {self._root}") from None
            raise Missing(key) from None
        except OSError as error:
            raise RepositoryUnavailable(f"{self._root}: {error}") from error

    def keys(self, prefix: str, *, complete: bool = False) -> list[Stored]:
        """Return all keys that begin so: always all of them.

        Removes what writers that died have left beside them.
        """
        found = []
        if not self._root.is_dir():
            raise RepositoryUnavailable(f"there is no folder {self._root}")
        abandoned = time.time() - ABANDONED_SECONDS
        try:
            for folder, _, names in os.walk(self._root / prefix, onerror=_refuse):
                for file in (Path(folder) / name for name in names):
                    with suppress(FileNotFoundError):  # another has removed it
                        modified = file.stat().st_mtime
                        if not file.name.startswith("."):
                            found.append(Stored(str(file.relative_to(self._root)), modified))
                        elif modified < abandoned:
                            file.unlink()
        except OSError as error:
            raise RepositoryUnavailable(f"{self._root}: {error}") from error
        return found

    def delete(self, keys: Sequence[str]) -> None:
        """Remove what is there of them, and folders that are empty then."""
        for file in (self._root / key for key in keys):
            try:
                file.unlink(missing_ok=True)
            except OSError as error:
                raise RepositoryUnavailable(f"{self._root}: {error}") from error
            for folder in file.parents:
                if folder == self._root or not _removed(folder):
                    break

    def _place(self, key: str, data: bytes, *, only_new: bool) -> bool:
        place = self._root / key
        copy = place.with_name(f".{uuid.uuid4()}")
        try:
            _write(copy, data)
            try:
                if only_new:
                    os.link(copy, place)
                else:
                    copy.replace(place)
            finally:
                copy.unlink(missing_ok=True)
        except FileExistsError:
            return False
        except OSError as error:
            raise RepositoryUnavailable(f"{self._root}: {error}") from error
        return True


def _refuse(error: OSError) -> None:
    """Let a folder that can't be listed end the walk, which would leave it out without a word."""
    if not isinstance(error, FileNotFoundError):  # else another has removed it
        raise error


def _write(file: Path, data: bytes) -> None:
    while True:
        file.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError), file.open("xb") as fresh:  # else the folder was removed
            fresh.write(data)
            fresh.flush()
            os.fsync(fresh.fileno())
            return


def _removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except OSError:  # something is in it
        return False
    return True
