"""Files that one of several writers creates, whole: no rename, which would replace another's.

A store without hard links offers the same as a conditional write (`If-None-Match` of S3).
"""

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


def create_in(folder: Path, name: str, text: str) -> bool:
    """Do the same in a folder that is not made: it has to be there still. Raises OSError."""
    file = folder / name
    draft = file.with_name(f".{file.name}-{uuid.uuid4().hex}")
    try:
        draft.write_text(text)
        os.link(draft, file)
    except FileExistsError:
        return False
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()
    return True
