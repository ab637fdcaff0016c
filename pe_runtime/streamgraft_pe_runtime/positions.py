"""Positions in Kafka: what a checkpoint has committed, and what is published of it.

Spark writes `offsets/<batch>` before a batch and `commits/<batch>` after it. A query was stopped at
a batch boundary if and only if the newest of both have the same number.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamgraft_common.pe_metadata import InputPort
from streamgraft_pe_runtime.arrangement import noted
from streamgraft_pe_runtime.checkpoint_files import entries
from streamgraft_pe_runtime.checkpoint_health import reading
from streamgraft_pe_runtime.scan_order import place_of, scan_name, topic_of

Positions = dict[tuple[str, int], int]
"""(place, partition) → next offset to read. A place is a topic, with `@` and its brokers behind it
if the PE reads topics of that name in several Kafka clusters."""


def place_in(inputs: Iterable[InputPort], port: InputPort) -> str:
    """Return the place of the topic of one of the inputs."""
    servers = {other.bootstrap_servers for other in inputs if other.topic == port.topic}
    return scan_name(port.topic, port.bootstrap_servers if len(servers) > 1 else "")


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint says."""

    clean: bool = True
    """Whether every batch that was begun is committed."""
    positions: Positions = field(default_factory=dict)
    scans: Sequence[str] = ()
    """The names of those that the positions are of, as far as noted."""


def read_checkpoint(folder: Path) -> Checkpoint:
    """Read a query's checkpoint; one that doesn't exist yet is clean and has no positions.

    Raises CheckpointDamaged.
    """
    planned, committed = _newest(folder / "offsets"), _newest(folder / "commits")
    scans = noted(folder).names
    if committed is None:
        return Checkpoint(clean=planned is None, scans=scans)
    file = folder / "offsets" / str(committed)
    with reading(file):
        lines = file.read_text().splitlines()
        # Line 0 is the version, line 1 the batch's metadata, then one line per source.
        found = [*map(_document, lines[2:])]
        return Checkpoint(planned == committed, merged(found, scans), scans)


def merged(offsets: Iterable[Any], scans: Sequence[str] = ()) -> Positions:
    """Return the positions in Kafka offsets as Spark shows them ({topic: {partition: offset}}).

    Offsets of sources other than Kafka are left out: theirs may have any form. Of a topic that is
    read in several ways the earliest count. `scans`: their names, if these are known.
    """
    positions: Positions = {}
    documents = [*offsets]
    names = [*map(place_of, scans)] if len(scans) == len(documents) else [""] * len(documents)
    for document, name in zip(documents, names, strict=True):
        for topic, partitions in document.items() if isinstance(document, dict) else ():
            if isinstance(partitions, dict) and all(map(_is_offset, partitions.items())):
                for number, at in partitions.items():
                    key = name if topic_of(name) == topic else topic, int(number)
                    positions[key] = min(at, positions.get(key, at))
    return positions


def _is_offset(item: tuple[str, Any]) -> bool:
    partition, offset = item
    return partition.isdecimal() and type(offset) is int


def _document(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None  # a source without offsets is a dash


def _newest(folder: Path) -> int | None:
    return max(entries(folder), default=None)
