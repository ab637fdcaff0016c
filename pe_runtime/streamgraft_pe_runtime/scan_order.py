"""Positions belong to topics: a checkpoint's log is put into the order of a plan's scans.

Spark numbers the sources of a query as they stand in its plan, and its log has a line for each. So
an edit that has a union begin with its other side, or rows of a topic go one way more or less,
would get the positions of another topic, or none. In micro-batches all scans of an input are one
source for Spark, whose lines say the same.

The log does not say which Kafka cluster a topic is in, nor by which input it is read, or in
real-time mode by which of the ways that rows go: each has scans of its own there, which may end at
different records. So that is noted beside it; without the note, the order counts. A way with
another name goes on where the only one did that is not there any more.
"""

import json
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path

from streamgraft_common.edits import WAYS
from streamgraft_common.text import listed
from streamgraft_pe_runtime import query_logs
from streamgraft_pe_runtime.checkpoint_files import CHECKSUM, KEPT_ENTRIES, entries, write
from streamgraft_pe_runtime.checkpoint_health import reading
from streamgraft_pe_runtime.modes import may_be_repeated
from streamgraft_pe_runtime.spark_log import Offsets, Position, offsets_of

NOTE = "scans"
"""File with the names of the scans whose positions a checkpoint's log has, in their order."""
_HEAD = 2
"""Lines of an entry of the offset log before those of sources."""


class OtherTopics(Exception):
    """A plan reads what its checkpoint has no position in; the message says what to do."""


class RenamedWays(Exception):
    """A batch in real-time mode was cut off, and its ways have other names; the message says what
    to do."""

    def __init__(self, gone: set[str], new: set[str]) -> None:
        super().__init__(
            "the last run was cut off within a batch in real-time mode, in which rows went by"
            f" {listed(sorted(gone))}, and now would by {listed(sorted(new))}: what is written"
            " already can't be told any more. Set the operators' names and inputs as they were, let"
            " the query run until it can be stopped, and then change them"
        )


class OtherWays(Exception):
    """Rows of a topic went ways that ended at different records; the message says what to do."""

    def __init__(self, topic: str) -> None:
        super().__init__(
            f"it read {topic} in several ways, which ended at different records, and which of them"
            " goes on where can't be told: set back what was edited, and edit it again one of these"
            " ways after the other, or leave real-time mode while no records come"
        )


def scan_name(topic: str, servers: str = "", way: str = "") -> str:
    """Return the name by which a scan is known here."""
    return topic + (f"@{servers}" if servers else "") + (f"#{way}" if way else "")


def arranged(
    positions: Sequence[Offsets], topics: Sequence[str], noted: Sequence[str] = ()
) -> list[int] | None:
    """Return which of a log's positions each scan of a plan goes on from; None if each has its own.

    `positions`: the partitions of each source by topic; `topics`: of the scans; `noted`: those of
    the plan that the positions are of, as far as that was noted. Raises OtherTopics, OtherWays.
    """
    known = [next(iter(position)) for position in positions if len(position) == 1]
    if len(known) != len(positions):
        return None  # a source without a position yet, or not of one topic, has its place only
    if [_name(topic) for topic in noted] == known:
        known = list(noted)
    elif known == [_name(topic) for topic in topics]:
        return None
    if known == list(topics):
        return None
    places = [_place(topic, known) for topic in topics]
    found = zip(topics, places, strict=True)
    if missing := sorted({_shown(topic) for topic, there in found if not there}):
        raise OtherTopics(
            f"it reads {listed(missing)}, in which its checkpoint has no position: that has some in"
            f" {listed(sorted(map(_shown, known)))}; {WAYS}"
        )
    order: list[int] = []
    for topic, there in zip(topics, places, strict=True):
        same = [index for index in there if known[index] == topic]
        if same and len(same) == topics.count(topic):
            # Spark may make several sources of one name, too: each has its place among them.
            order.append(same[topics[: len(order)].count(topic)])
        else:
            order.append(_source_of(topic, there, positions, known, topics))
    return None if [positions[index] for index in order] == [*positions] else order


def arrange(checkpoint: Path, topics: Sequence[str | None]) -> None:
    """Put the logs of a query that nobody runs into the order of a plan's scans.

    `topics`: of the scans; None for one that is not of one topic. Each file is replaced at once, so
    whoever is cut off does it again. Raises OtherTopics, OtherWays, RenamedWays, CheckpointDamaged,
    OSError.
    """
    wanted = [topic for topic in topics if topic is not None]
    if len(wanted) != len(topics):
        return
    log, note = checkpoint / "offsets", checkpoint / NOTE
    noted = json.loads(note.read_text()) if note.exists() else []
    if may_be_repeated(checkpoint):
        before, now = ({_way(topic) for topic in each} for each in (noted, wanted))
        if before - now and now - before:
            raise RenamedWays(before - now, now - before)
    for number in entries(log)[-KEPT_ENTRIES:]:
        file = log / str(number)
        with reading(file):
            lines = file.read_text().splitlines()
            sources = lines[_HEAD:]
            order = arranged([*map(offsets_of, sources)], wanted, noted) if sources else None
        if order is not None:
            (log / CHECKSUM.format(number)).unlink(missing_ok=True)
            write(file, "\n".join([*lines[:_HEAD], *(sources[index] for index in order)]))
    if not entries(checkpoint / "commits"):
        told = list(dict.fromkeys(noted))
        _arrange_sources(checkpoint / "sources", list(dict.fromkeys(wanted)), told)
    if wanted != noted:
        checkpoint.mkdir(parents=True, exist_ok=True)
        write(note, json.dumps(wanted))


def ended(checkpoint: Path) -> str:
    """Return where the last batch of a query in real-time mode ended, as its ledger has positions.

    For each scan with a way `way/topic:partition=offset;partition=offset`, with the next offset to read, and
    commas in between; nothing if no batch was planned, or that
    is not known. Raises CheckpointDamaged, OSError.
    """
    position, note = query_logs.read(checkpoint), checkpoint / NOTE
    scans = json.loads(note.read_text()) if note.exists() else []
    if position is None or len(scans) != len(position.sources):
        return ""
    return ",".join(
        f"{_way(name)}/{topic}:" + ";".join(f"{partition}={at}" for partition, at in found.items())
        for name, source in zip(scans, position.sources, strict=True)
        if _way(name)
        for topic, found in source.items()
        if found
    )


def _way(topic: str) -> str:
    return topic.partition("#")[2]


def _name(topic: str) -> str:
    return _shown(topic).partition("@")[0]


def _shown(topic: str) -> str:
    return topic.partition("#")[0]


def _place(topic: str, known: Sequence[str]) -> list[int]:
    """Return the positions that are of the topic of a scan.

    A name says which cluster it is in only where there are two, so that may have come or gone, or
    have other brokers by now.
    """
    there = [index for index, name in enumerate(known) if _shown(name) == _shown(topic)]
    if there:
        return there
    named = [index for index, name in enumerate(known) if _name(name) == _name(topic)]
    ours = [index for index in named if _way(known[index]) == _way(topic)] or named
    return ours if len({_shown(known[index]) for index in ours}) == 1 else []


def _source_of(
    topic: str,
    there: Sequence[int],
    positions: Sequence[Offsets],
    known: Sequence[str],
    topics: Sequence[str],
) -> int:
    """Return which of the positions in its topic a scan goes on from. Raises OtherWays."""
    gone = [index for index in there if known[index] not in topics]
    found = [index for index in there if known[index] == topic] or gone
    if any(positions[index] != positions[found[0]] for index in found[1:]):
        raise OtherWays(_shown(topic))
    return (found or there)[0]


def _arrange_sources(folder: Path, topics: Sequence[str], noted: Sequence[str]) -> None:
    """Do the same to where sources began, which counts until a batch has ended."""
    files = sorted(folder.glob("*/0"), key=lambda file: int(file.parent.name))
    texts: list[str] = []
    for file in files:
        with reading(file):
            texts.append(file.read_text())
    if not texts:
        return
    with reading(folder):
        order = arranged(Position.initial(texts).sources, topics, noted)
    if order is None:
        return
    draft = folder.with_name(f".{folder.name}-{uuid.uuid4().hex}")
    for number, index in enumerate(order):
        (draft / str(number)).mkdir(parents=True)
        (draft / str(number) / "0").write_text(texts[index])
    shutil.rmtree(folder)
    draft.rename(folder)
