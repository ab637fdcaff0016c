"""File locks, which end with their process whatever happens."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def exclusive(file: Path) -> Iterator[None]:
    """Hold the lock of a file, waiting for other processes that hold it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def taken(file: Path) -> IO[str] | None:
    """Take the lock of a file, until what is returned is closed; None: another holds it."""
    handle = file.open("w")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        handle.close()
        return None
    return handle
