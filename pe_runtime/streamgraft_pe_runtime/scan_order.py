"""Positions belong to topics: a checkpoint's log is put into the order of a plan's scans.

Spark numbers the sources of a query as they stand in its plan, and its log has a line for each. So
an edit that has a union begin with its other side, or rows of a topic go one way more or less,
would get the positions of another topic, or none. Scans of one topic are one source for Spark,
whose lines say the same.

The log does not say which Kafka cluster a topic is in. Where two have topics of one name, which is
whose is noted beside it; without that, the order counts.
"""

import json
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path

from streamgraft_common.edits import WAYS
from streamgraft_common.text import listed
from streamgraft_pe_runtime.checkpoint_files import CHECKSUM, KEPT_ENTRIES, entries, write
from streamgraft_pe_runtime.checkpoint_health import reading
from streamgraft_pe_runtime.spark_log import Offsets, Position, offsets_of

_HEAD = 2
"""Lines of an entry of the offset log before those of sources."""


class OtherTopics(Exception):
    """A plan reads what its checkpoint has no position in; the message says what to do."""


def arranged(
    positions: Sequence[Offsets], topics: Sequence[str], noted: Sequence[str] = ()
) -> list[int] | None:
    """Return which of a log's positions each scan of a plan goes on from; None if each has its own.

    `positions`: the partitions of each source by topic; `topics`: of the scans; `noted`: those of
    the plan that the positions are of, as far as that was noted. Raises OtherTopics.
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
    if missing := sorted(set(topics) - set(known)):
        raise OtherTopics(
            f"it reads {listed(missing)}, in which its checkpoint has no position: that has some in"
            f" {listed(sorted(set(known)))}; {WAYS}"
        )
    return [known.index(topic) for topic in topics]


def arrange(checkpoint: Path, topics: Sequence[str | None]) -> None:
    """Put the logs of a query that nobody runs into the order of a plan's scans.

    `topics`: of the scans; None for one that is not of one topic. Each file is replaced at once, so
    whoever is cut off does it again. Raises OtherTopics, CheckpointDamaged, OSError.
    """
    wanted = [topic for topic in topics if topic is not None]
    if len(wanted) != len(topics):
        return
    log, note = checkpoint / "offsets", checkpoint / "scans"
    noted = json.loads(note.read_text()) if note.exists() else []
    for number in entries(log)[-KEPT_ENTRIES:]:
        file = log / str(number)
        with reading(file):
            lines = file.read_text().splitlines()
            sources = lines[_HEAD:]
            order = arranged([*map(offsets_of, sources)], wanted, noted) if sources else None
        if order is not None:
            (log / CHECKSUM.format(number)).unlink(missing_ok=True)
            write(file, "\n".join([*lines[:_HEAD], *(sources[index] for index in order)]))
    _arrange_sources(checkpoint / "sources", list(dict.fromkeys(wanted)))
    if any(topic != _name(topic) for topic in wanted):
        checkpoint.mkdir(parents=True, exist_ok=True)
        write(note, json.dumps(wanted))
    else:
        note.unlink(missing_ok=True)


def _name(topic: str) -> str:
    return topic.partition("@")[0]


def _arrange_sources(folder: Path, topics: Sequence[str]) -> None:
    """Do the same to where sources began, which counts before the first batch."""
    files = sorted(folder.glob("*/0"), key=lambda file: int(file.parent.name))
    texts: list[str] = []
    for file in files:
        with reading(file):
            texts.append(file.read_text())
    if not texts:
        return
    with reading(folder):
        order = arranged(Position.initial(texts).sources, topics)
    if order is None:
        return
    draft = folder.with_name(f".{folder.name}-{uuid.uuid4().hex}")
    for number, index in enumerate(order):
        (draft / str(number)).mkdir(parents=True)
        (draft / str(number) / "0").write_text(texts[index])
    shutil.rmtree(folder)
    draft.rename(folder)
