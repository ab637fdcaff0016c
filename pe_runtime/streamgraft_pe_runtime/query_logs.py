"""The logs of a query's checkpoint on disk: read where it ended, and end it for whoever runs it."""

import json
import os
import re
import uuid
from contextlib import suppress
from pathlib import Path

from streamgraft_pe_runtime import checkpoint_files, exclusive_files
from streamgraft_pe_runtime.checkpoint_files import CHECKSUM, entries
from streamgraft_pe_runtime.checkpoint_health import CheckpointDamaged, reading
from streamgraft_pe_runtime.spark_log import Position

_CLOSED = "closed\n"
_BARRED = "barred\n"
"""The same for a query that nobody goes on from, as a shard of it went back to a cut."""
_OFFSETS, _COMMITS, _SOURCES = "offsets", "commits", "sources"
_KEPT = 10
"""Entries of each log: as many as Spark leaves of one that it goes on with (conf.py)."""
_NUMBERED = re.compile(r"\.*(\d+)(?:[.-].*)?")
"""An entry, its checksum, or a draft of one."""


def newest(log: Path) -> int:
    """Return the number of a log's newest entry, -1 without one."""
    return max(entries(log), default=-1)


def read(checkpoint: Path) -> Position | None:
    """Return where a query's last committed batch ended, or its first would begin; else None.

    Raises CheckpointDamaged, and OSError where we are shown an older state of the log.
    """
    committed = newest(checkpoint / _COMMITS)
    if (end := _end(checkpoint)) and newest(checkpoint / _OFFSETS) != committed + 1:
        if end == _BARRED:
            why = "amid a batch, a shard of it went back to a cut: roll back the region"
            raise CheckpointDamaged(checkpoint, why)
        # By NFS, for a while: its end is behind the last commit, which `close` has seen.
        raise OSError(f"{checkpoint} is closed behind a later batch than {committed}: try again")
    if committed >= 0:
        texts = [_text(checkpoint / log / str(committed)) for log in (_OFFSETS, _COMMITS)]
        with reading(checkpoint / _OFFSETS / str(committed)):
            return Position.parse(*texts)
    sources = sorted((checkpoint / _SOURCES).glob("*/0"), key=lambda file: int(file.parent.name))
    if not sources:
        return None
    with reading(sources[0]):
        return Position.initial([file.read_text() for file in sources])


def is_cut_off(checkpoint: Path) -> bool:
    """Return whether a query ended, or is, amid a batch."""
    planned = newest(checkpoint / _OFFSETS)
    return planned > newest(checkpoint / _COMMITS) and not is_closed(checkpoint)


def write(checkpoint: Path, number: int, position: Position) -> None:
    """Write a position as the newest entries of a checkpoint, unless another one has done it.

    An entry that says something else is the next batch of whoever runs it: that stays.
    """
    # Spark takes no log without it.
    exclusive_files.create(checkpoint / "metadata", json.dumps({"id": str(uuid.uuid4())}))
    if position.batch is None:
        for source, text in enumerate(position.initial_sources()):
            exclusive_files.create(checkpoint / _SOURCES / str(source) / "0", text)
        return
    offsets, commit = position.entries()
    entry = checkpoint / _OFFSETS / str(number)
    if exclusive_files.create(entry, offsets) or _text(entry) == offsets:
        exclusive_files.create(checkpoint / _COMMITS / str(number), commit)


def is_closed(checkpoint: Path) -> bool:
    """Return whether a query is over, for whoever runs it."""
    return _end(checkpoint) is not None


def close(checkpoint: Path) -> bool:
    """End a query for whoever runs it: from now on its owner can begin no batch.

    False if a batch is cut off, or runs: it has to end before.
    """
    while not is_closed(checkpoint):
        if is_cut_off(checkpoint):
            return False
        number = newest(checkpoint / _COMMITS) + 1
        exclusive_files.create(checkpoint / _OFFSETS / str(number), _CLOSED)
    return True


def bar(checkpoint: Path) -> None:
    """End a query that nobody goes on from, also amid a batch: its owner can begin no other."""
    while not is_closed(checkpoint):
        number = newest(checkpoint / _OFFSETS) + 1
        exclusive_files.create(checkpoint / _OFFSETS / str(number), _BARRED)


def drop_stray(checkpoint: Path) -> None:
    """Remove what a frozen owner has planned in a log that took the place of its own meanwhile.

    It is behind the batch that may be cut off here, with a gap before, which no owner leaves.
    """
    planned, committed = entries(checkpoint / _OFFSETS), newest(checkpoint / _COMMITS)
    for number in planned:
        # Entries in a row are no stray ones, but of batches whose commits we are not shown yet.
        if number > committed + 1 and {number - 1, number + 1}.isdisjoint(planned):
            (checkpoint / _OFFSETS / CHECKSUM.format(number)).unlink(missing_ok=True)
            (checkpoint / _OFFSETS / str(number)).unlink(missing_ok=True)


def reopen(checkpoint: Path) -> None:
    """Let a shard's own checkpoint be one that Spark reads, if it was closed. Nobody runs it."""
    if is_closed(checkpoint):
        log = checkpoint / _OFFSETS
        (log / str(newest(log))).unlink(missing_ok=True)


def go_on(checkpoint: Path, number: int, position: Position) -> None:
    """Let a shard's own checkpoint go on after a batch that other queries have come to.

    Nobody runs it. Spark wants the entry before the last one of the offset log, too; and an owner
    of before, which was frozen, must find its next one. Entries without a commit are of an attempt
    that did not come to its end, and to be replaced: as a batch, they would be run.
    """
    reopen(checkpoint)
    if (committed := newest(checkpoint / _COMMITS)) < number:
        offsets, _ = position.entries()
        (checkpoint / _OFFSETS).mkdir(parents=True, exist_ok=True)
        for entry in sorted({committed + 1, number - 1, number}):
            if entry > committed:
                checkpoint_files.write(checkpoint / _OFFSETS / str(entry), offsets)
        write(checkpoint, number, position)


def cut(checkpoint: Path) -> bool:
    """Do the same to a shard's own checkpoint, whose log goes on to be one that Spark reads.

    Its newest entries say the same once more, instead of the owner's next batch. A log without a
    batch is closed: whoever goes on with it has to open it again. One that is closed stays so; its
    owner may have ended its first batch while that was done.
    """
    while not is_cut_off(checkpoint):
        if is_closed(checkpoint):
            return True
        position = read(checkpoint)
        if position is None or position.batch is None:
            return close(checkpoint)
        number = newest(checkpoint / _OFFSETS) + 1
        offsets, commit = position.entries()
        if exclusive_files.create(checkpoint / _OFFSETS / str(number), offsets):
            exclusive_files.create(checkpoint / _COMMITS / str(number), commit)
            return True
    return False


def shorten(checkpoint: Path, name: Path) -> None:
    """Remove all but the newest entries from the logs of a shard's own checkpoint.

    Spark does so when it runs a batch, and many cuts may go by before. `name`: by which we have the
    shard; if another folder takes its place, that keeps its files.
    """
    for log in (_OFFSETS, _COMMITS):
        if not (checkpoint / log).is_dir():
            continue
        folder = os.open(checkpoint / log, os.O_RDONLY | os.O_DIRECTORY)
        try:
            if name.exists():  # so that is the folder which we have open
                _shorten(folder)
        finally:
            os.close(folder)


def _shorten(folder: int) -> None:
    found = {file: match for file in os.listdir(folder) if (match := _NUMBERED.fullmatch(file))}
    earlier = sorted(int(file) for file in found if file.isdigit())[:-_KEPT]
    old = [file for file, match in found.items() if earlier and int(match[1]) <= earlier[-1]]
    # Entries last: a frozen owner may have a draft, and would take the place of one for free.
    for file in sorted(old, key=str.isdigit):
        with suppress(FileNotFoundError):
            os.unlink(file, dir_fd=folder)


def _end(checkpoint: Path) -> str | None:
    log = checkpoint / _OFFSETS
    last = newest(log)
    text = _text(log / str(last)) if last >= 0 else None
    return text if text in (_CLOSED, _BARRED) else None


def _text(file: Path) -> str:
    with reading(file):
        return file.read_text()
