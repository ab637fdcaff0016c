"""The files of a savepoint on the operator's volume."""

import json
import shutil
from pathlib import Path

from streamgraft_common import names


def removed(folder: Path, uid: str, *, copied: bool) -> str:
    """Remove what a savepoint has; return why it stays, '' if it does not. Blocks.

    `copied`: whether it came to copies. Those of another savepoint of its name stay: they may be
    the only ones of a job whose objects came back from a backup with other uids.
    """
    try:
        if (held_by := _uid_of(folder)) not in (None, uid):
            # After "remove it yourself".
            why = f"only if nobody needs it, as it is another savepoint's (uid {held_by})"
            return why if copied else ""
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


def _uid_of(folder: Path) -> str | None:
    """Return whose copies are in a folder; None if it does not say. Raises OSError."""
    try:
        return str(json.loads((folder / names.SAVEPOINT_FILE).read_text())["uid"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise OSError(f"{names.SAVEPOINT_FILE} can't be read: {error!r}") from error
