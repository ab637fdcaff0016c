"""A checkpoint's log, put into the order of a plan's scans before its query starts (scan_order.py).

What is to be written is complete in a folder before the first file is replaced, so whoever is cut
off there is finished by the next one, and does not begin anew with half of the files.
"""

import json
import os
import shutil
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from streamgraft_pe_runtime import query_logs
from streamgraft_pe_runtime.checkpoint_files import CHECKSUM, KEPT_ENTRIES, Beside, entries, write
from streamgraft_pe_runtime.checkpoint_health import reading
from streamgraft_pe_runtime.modes import comes_again, may_be_repeated
from streamgraft_pe_runtime.scan_order import (
    EditedWays,
    Scans,
    arranged,
    comes_another_way,
    is_topic,
    renamed,
    topic_of,
    way_of,
    ways_are_edited,
)
from streamgraft_pe_runtime.spark_log import Offsets, Position, offsets_of

NOTE = "scans.json"
"""File with what the plan reads and writes to whose positions a checkpoint's log has."""
_PENDING = "arranged"
"""Folder with what is to replace files of the checkpoint."""
_SOURCES = "sources"
_HEAD = 2
"""Lines of an entry of the offset log before those of sources."""


def arrange(
    checkpoint: Path,
    topics: Sequence[str | None],
    outputs: Mapping[str, Sequence[str]] | None = None,
    *,
    loose: bool = False,
) -> None:
    """Put the logs of a query that nobody runs into the order of a plan's scans.

    `topics`: of the scans; None for one that is not of one topic. `outputs`: Scans.outputs.
    `loose`: whether what was cut off is written again. Raises OtherTopics, OtherWays, EditedWays,
    CheckpointDamaged, OSError.
    """
    for draft in checkpoint.glob(f".{_PENDING}-*"):
        shutil.rmtree(draft, ignore_errors=True)
    finish(checkpoint)
    wanted = [topic for topic in topics if topic is not None]
    if len(wanted) != len(topics):
        return
    to = {way: list(names) for way, names in (outputs or {}).items()}
    now, before = Scans(wanted, to), noted(checkpoint)
    if now == before:
        return
    is_cut_off = comes_again(checkpoint) if loose else may_be_repeated(checkpoint)
    if is_cut_off and (comes_another_way if loose else ways_are_edited)(before, now):
        raise EditedWays
    files: dict[str, str] = {}
    for number in entries(checkpoint / "offsets")[-KEPT_ENTRIES:]:
        file = checkpoint / "offsets" / str(number)
        with reading(file):
            lines = file.read_text().splitlines()
            sources = lines[_HEAD:]
            order = arranged([*map(_offsets, sources)], now, before) if sources else None
        if order is not None:
            text = "\n".join([*lines[:_HEAD], *(sources[index] for index in order)])
            files[f"offsets/{number}"] = text
    files[NOTE] = json.dumps({"scans": now.names, "outputs": now.outputs})
    has_run = entries(checkpoint / "commits")
    _replace(checkpoint, files, None if has_run else _arranged_sources(checkpoint, now, before))


def noted(checkpoint: Path) -> Scans:
    """Return what is noted of the plan that a checkpoint's log is of; nothing without a note.

    Raises CheckpointDamaged, OSError.
    """
    file = checkpoint / NOTE
    if not file.exists():
        return Scans()
    with reading(file):
        found = json.loads(file.read_text())
        return Scans(found["scans"], found["outputs"])


def go_on(checkpoint: Path, number: int, position: Position, sources: Sequence[Offsets]) -> None:
    """Have a query that nobody runs go on from other positions in its sources.

    `number`: of its last batch, which ended at `position`. Raises OSError.
    """
    if tuple(sources) == position.sources:
        return
    new = replace(position, sources=tuple(sources))
    if position.batch is None:
        _replace(checkpoint, {}, dict(enumerate(new.initial_sources())))
        return
    offsets, _ = new.entries()
    _replace(checkpoint, {f"offsets/{number}": offsets}, None)


def finish(checkpoint: Path) -> None:
    """Put in place what was complete when the one who was to do it was cut off."""
    pending = checkpoint / _PENDING
    if not pending.is_dir():
        return
    if (pending / _SOURCES).is_dir():
        # A list: another owner may have put all in place by the time that we go on.
        kept = os.listdir(pending / _SOURCES)
        for folder in checkpoint.glob(f"{_SOURCES}/*"):
            if folder.name not in kept:
                shutil.rmtree(folder)
    for file in filter(Path.is_file, sorted(pending.rglob("*"))):
        target = checkpoint / file.relative_to(pending)
        target.parent.mkdir(parents=True, exist_ok=True)
        (target.parent / CHECKSUM.format(target.name)).unlink(missing_ok=True)
        write(target, file.read_bytes())
    # A part of it must not be taken for the whole.
    shutil.rmtree(pending.rename(checkpoint / f".{_PENDING}-{uuid.uuid4().hex}"))


def forget(checkpoint: Path) -> None:
    """Drop what is noted, and was to be put in place: the log has become another's."""
    shutil.rmtree(checkpoint / _PENDING, ignore_errors=True)
    (checkpoint / NOTE).unlink(missing_ok=True)


def rename_topics(lines: Sequence[str], topics: Mapping[str, str]) -> list[str]:
    """Return the lines of a note with other names of topics; `topics`: new by old ones."""
    found = json.loads("\n".join(lines))
    return [json.dumps(found | {"scans": [renamed(name, topics) for name in found["scans"]]})]


def ended(checkpoint: Path) -> str:
    """Return where the last batch of a query in real-time mode ended, as its ledger has positions.

    For each scan with a way `way/topic:partition=offset;partition=offset`, with the next offset to
    read, and commas in between; nothing if no batch was planned, or that is not known. Raises
    CheckpointDamaged, OSError.
    """
    position, names = query_logs.read(checkpoint), noted(checkpoint).names
    if position is None or len(names) != len(position.sources):
        return ""
    return ",".join(
        f"{way_of(name)}/{topic}:" + ";".join(f"{number}={at}" for number, at in found.items())
        for name, source in zip(names, position.sources, strict=True)
        if way_of(name)
        for topic, found in source.items()
        if found
    )


def _offsets(line: str) -> Offsets:
    """Return the positions in a line of the offset log; none if they are not of topics."""
    found = offsets_of(line)
    return found if isinstance(found, dict) else {}


def _arranged_sources(checkpoint: Path, now: Scans, before: Scans) -> dict[int, str] | None:
    """Do the same to where sources began, which counts until a batch has ended. None: nothing.

    Of what is no topic there may be no file, or one of another form.
    """
    texts: dict[int, str] = {}
    for file in checkpoint.glob(f"{_SOURCES}/*/0"):
        with reading(file):
            texts[int(file.parent.name)] = file.read_text()
    if not texts or not (before.names or all(map(is_topic, now.names))):
        return None
    now, before = (Scans(list(dict.fromkeys(one.names)), one.outputs) for one in (now, before))
    topics = {number for number, name in enumerate(before.names) if is_topic(name)}
    if topics - texts.keys() and not entries(checkpoint / "offsets"):
        return {}  # it was cut off while it looked where each begins
    count = max(len(before.names), *(number + 1 for number in texts))
    known = topics if before.names else {*range(count)}
    with reading(checkpoint / _SOURCES):
        positions = [
            Position.initial([texts[number]]).sources[0] if number in known & texts.keys() else {}
            for number in range(count)
        ]
    found = {topic for position in positions for topic in position}
    lacks = found < {*map(topic_of, now.names)} and not before.names
    if lacks and not entries(checkpoint / "offsets"):
        return {}  # so was the query that had the shards before: its note went with it
    order = arranged(positions, now, before)
    if order is None:
        return None
    return {number: texts[index] for number, index in enumerate(order) if index in texts}


def _replace(checkpoint: Path, files: Mapping[str, str], sources: Mapping[int, str] | None) -> None:
    """Write files, and exactly these files of sources, all or none."""
    checkpoint.mkdir(parents=True, exist_ok=True)
    with Beside(checkpoint / _PENDING) as draft:
        texts = dict(files)
        if sources is not None:
            (draft / _SOURCES).mkdir()
            texts |= {f"{_SOURCES}/{number}/0": text for number, text in sources.items()}
        for name, text in texts.items():
            (draft / name).parent.mkdir(parents=True, exist_ok=True)
            (draft / name).write_text(text)
    finish(checkpoint)
