"""Files that one of several writers creates, whole: no rename, which would replace another's.

A store without hard links offers the same as a conditional write (`If-None-Match` of S3).
"""

import errno
import os
import uuid
from contextlib import suppress
from pathlib import Path


def create(file: Path, text: str) -> bool:
    """Create a file with this text; False if it is there already, whoever made it.

    Its folder is made, too. Like Spark's own files it is not forced onto the disk.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    return create_in(file.parent, file.name, text)


def create_in(folder: Path, name: str, text: str, *, durable: bool = False) -> bool:
    """Do the same in a folder that is not made: it has to be there still. Raises OSError.

    `durable`: it is on the disk before this returns, and its text before its name.
    """
    file = folder / name
    draft = file.with_name(f".{file.name}-{uuid.uuid4().hex}")
    try:
        draft.write_text(text)
        if durable:
            sync(draft)
        os.link(draft, file)
        if durable:
            _sync_folder(folder)
    except FileExistsError:
        return False
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()
    return True


def sync(path: Path) -> None:
    """Force a file, or what a folder says is in it, onto the disk. Raises OSError."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _sync_folder(folder: Path) -> None:
    try:
        sync(folder)
    except OSError as error:
        # Some file systems of networks can't: what their servers have answered is kept, or nothing
        # that we could do keeps it.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
