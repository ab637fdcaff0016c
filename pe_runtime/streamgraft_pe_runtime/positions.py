"""Positions in Kafka: what a checkpoint has committed, and what is published of it.

Spark writes `offsets/<batch>` before a batch and `commits/<batch>` after it. A query was stopped at
a batch boundary if and only if the newest of both have the same number.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamgraft_pe_runtime.checkpoint_files import entries
from streamgraft_pe_runtime.checkpoint_health import reading

Positions = dict[tuple[str, int], int]
"""(topic, partition) → next offset to read."""


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint says."""

    clean: bool = True
    """Whether every batch that was begun is committed."""
    positions: Positions = field(default_factory=dict)


def read_checkpoint(folder: Path) -> Checkpoint:
    """Read a query's checkpoint; one that doesn't exist yet is clean and has no positions.

    Raises CheckpointDamaged.
    """
    planned, committed = _newest(folder / "offsets"), _newest(folder / "commits")
    if committed is None:
        return Checkpoint(clean=planned is None)
    file = folder / "offsets" / str(committed)
    with reading(file):
        lines = file.read_text().splitlines()
        # Line 0 is the version, line 1 the batch's metadata, then one line per source.
        return Checkpoint(planned == committed, merged(_documents(lines[2:])))


def merged(offsets: Iterable[Any]) -> Positions:
    """Return the positions in Kafka offsets as Spark shows them ({topic: {partition: offset}}).

    Offsets of sources other than Kafka are left out: theirs may have any form. Of a topic that is
    read in several ways the earliest count.
    """
    positions: Positions = {}
    for document in offsets:
        for topic, partitions in document.items() if isinstance(document, dict) else ():
            if isinstance(partitions, dict) and all(map(_is_offset, partitions.items())):
                for number, at in partitions.items():
                    key = topic, int(number)
                    positions[key] = min(at, positions.get(key, at))
    return positions


def _is_offset(item: tuple[str, Any]) -> bool:
    partition, offset = item
    return partition.isdecimal() and type(offset) is int


def _documents(lines: Iterable[str]) -> Iterator[Any]:
    for line in lines:
        try:
            yield json.loads(line)
        except ValueError:
            continue  # a source without offsets is a dash


def _newest(folder: Path) -> int | None:
    return max(entries(folder), default=None)
