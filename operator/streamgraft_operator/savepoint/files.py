"""The files of a savepoint on the operator's volume."""

import shutil
from pathlib import Path


def removed(folder: Path, uid: str, *, copied: bool) -> str:
    """Remove what a savepoint has; return why it stays, '' if it does not. Blocks.

    `copied`: whether it came to copies.
    """
    try:
        remove(folder, uid)
    except FileNotFoundError:
        return "it is not on the operator's volume" if copied else ""
    except OSError as error:
        return str(error)
    return ""


def remove(folder: Path, uid: str) -> None:
    """Remove what a savepoint of this uid has, and what an earlier try has left of it.

    It goes at once, under another name first: a shard that starts from it meanwhile would take a
    stage that is gone already for one that it never had. Blocks. Raises FileNotFoundError if there
    is nothing, or OSError.
    """
    aside = folder.with_name(f".{folder.name}-{uid}")
    tried = aside.exists()
    if tried:
        shutil.rmtree(aside)
    try:
        folder.rename(aside)
    except FileNotFoundError:
        if tried:
            return
        raise
    shutil.rmtree(aside)
