"""Copies of the files of checkpoints: hard links where the file system has them.

A copy is made beside its place and renamed when it is whole, so no part of one is taken for it.
"""

import os
import shutil
import tempfile
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from streamgraft_pe_runtime import exclusive_files

CHECKSUM = ".{}.crc"
"""Name of the checksum of a file, if there is one."""
LEDGERS = "ledgers"
"""Folder with which the sink makes sure that nothing but this very checkpoint goes on with what it
has noted in Kafka (docs/use/exactly-once.md). A copy never has it."""
TAKEN_OVER = "TAKEN-OVER"
"""File in it: the query is over for whoever runs it, and a run that comes late begins no ledger."""
REAL_TIME = "REAL-TIME"
"""File in it: real-time mode has begun to write, and did not end between two batches (modes.py)."""
FORMER = "former"
"""Folder in it with the ledgers of before another query."""
LOOSE = "LOOSE"
"""File in it: real-time mode has begun to write at least once, and did not end between two batches;
the time since when, in seconds."""
_FUNCTION = "FUNCTION"
KEPT_ENTRIES = 2
"""Spark reads the entry before the last one, too, when it goes on."""


class Beside:
    """A folder that gets its name when the block ends without an error."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._copy = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))

    def __enter__(self) -> Path:
        return self._copy

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            if error is None:
                self._copy.chmod(0o755)
                self._copy.rename(self._target)
        finally:
            if self._copy.exists():  # it did not come to its place
                shutil.rmtree(self._copy, ignore_errors=True)


def remove_left(target: Path) -> None:
    """Remove what those left beside a folder who died amid making or replacing it.

    Nobody else may work on it. It is renamed first: who does so all the same, as a pod that its
    node lost, fails then, and gives its name to no half of it.
    """
    for left in target.parent.glob(f".{target.name}-*"):
        gone = target.with_name(f".{target.name}-gone-{uuid.uuid4().hex}")
        with suppress(OSError):  # another time
            left.rename(gone)
            shutil.rmtree(gone)


def link_tree(source: Path, target: Path, leave: frozenset[str]) -> None:
    """Link all files of a folder into another one, but for entries of its top level in `leave`."""
    shutil.copytree(
        source,
        target,
        copy_function=link,
        dirs_exist_ok=True,
        ignore=lambda folder, names: leave.intersection(names) if folder == str(source) else (),
    )


def link_entries(source: Path, target: Path, last: int) -> None:
    """Link the last entries of a log up to `last`."""
    target.mkdir(exist_ok=True)
    for number in [item for item in entries(source) if item <= last][-KEPT_ENTRIES:]:
        for name in (str(number), CHECKSUM.format(number)):
            if (source / name).exists():
                link(str(source / name), str(target / name))


def entries(log: Path) -> list[int]:
    """Return the numbers of a log's entries, in order."""
    return sorted(int(file.name) for file in log.glob("[0-9]*") if file.name.isdigit())


def link(source: str, target: str) -> None:
    """Make a file appear under another name as well."""
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without links
        shutil.copy2(source, target)


def incarnation(checkpoint: Path) -> str:
    """Return what tells a checkpoint from one that was there before, and from its copies."""
    file = checkpoint / LEDGERS / _FUNCTION
    exclusive_files.create(file, str(uuid.uuid4()))
    if not file.read_text():  # left so by a full disk, or a power failure: all would be the same
        write(file, str(uuid.uuid4()))
    return file.read_text()


def keep_as_former(checkpoint: Path) -> None:
    """Mark ledgers as those of before another query, which may have written under the same ids.

    Whoever goes on with the checkpoint takes them up if they are there still, and begins its own if
    not.
    """
    ledgers = checkpoint / LEDGERS
    former = ledgers / FORMER
    for marker in list(ledgers.glob("*")):
        if marker.name not in (TAKEN_OVER, REAL_TIME, LOOSE, _FUNCTION, FORMER):
            former.mkdir(exist_ok=True)
            with suppress(FileNotFoundError):  # another owner does the same
                marker.rename(former / marker.name)
    for mark in (TAKEN_OVER, REAL_TIME, LOOSE):  # the latter of runs that came late
        (ledgers / mark).unlink(missing_ok=True)


def write(file: Path, content: str | bytes) -> None:
    """Write a file, at once for whoever reads it."""
    # Pods do the same at once, and the first process of each has the same number.
    copy = file.with_name(f".{file.name}-{uuid.uuid4().hex}")
    copy.write_bytes(content.encode() if isinstance(content, str) else content)
    copy.replace(file)


def edit(file: Path, change: Callable[[list[str]], list[str]]) -> None:
    """Change the lines of a file of a copy."""
    lines = file.read_text().split("\n")
    if (new := change(lines)) != lines:
        (file.parent / CHECKSUM.format(file.name)).unlink(missing_ok=True)
        file.unlink()  # a link: the savepoint's own must stay as it is
        file.write_text("\n".join(new))
