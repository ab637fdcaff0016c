"""Where a query goes on if what comes next in its checkpoint was deleted.

In real-time mode Spark's reader fails there each time, or seeks for ever, whatever its option
failOnDataLoss says. Nothing need be lost: behind the last record of a transaction is its end, which
nobody reads, so a partition without records comes to that once retention has emptied it.
"""

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from streamgraft_common.pe_metadata import InputPort
from streamgraft_pe_runtime import arrangement, query_logs
from streamgraft_pe_runtime.brokers import Bounds, Brokers, KafkaException
from streamgraft_pe_runtime.checkpoint_files import write
from streamgraft_pe_runtime.checkpoint_health import reading
from streamgraft_pe_runtime.losses import Gap
from streamgraft_pe_runtime.positions import place_in
from streamgraft_pe_runtime.scan_order import servers_of
from streamgraft_pe_runtime.spark_log import Offsets, Position

log = logging.getLogger(__name__)

_READ_UP = "read-up.json"
"""File in a checkpoint with topic, partition, a position, and where no records were up to there."""

Starts = Mapping[tuple[str, int], int]
"""Topic and partition → the first offset that is left."""
_BrokersOf = Callable[[str], Brokers]
_Lost = Callable[[InputPort, Gap], bool]


class RecordsLost(Exception):
    """Records were deleted before they were read; the message is one that Spark has for it."""

    def __init__(self, gap: Gap) -> None:
        topic, number = gap.partition
        super().__init__(
            f"records {gap.position} to {gap.start - 1} of partition {number} of {topic}: some data"
            " may have been lost because they are not available in Kafka any more"
        )


def pass_deleted(
    checkpoint: Path, inputs: Sequence[InputPort], brokers: _BrokersOf, lost: _Lost
) -> None:
    """Have a query that nobody runs go on from the first records that are left.

    `brokers`: by their addresses; `lost`: takes note of records that are lost, and tells whether to
    go on without them. Raises RecordsLost, CheckpointDamaged, OSError, KafkaException.
    """
    number = query_logs.newest(checkpoint / "commits")
    position, read = query_logs.read(checkpoint), _read_up(checkpoint)
    if position is None:
        return
    sources = list(position.sources)
    for index, port in _reading(checkpoint, position, inputs):
        starts = _starts(_bounds(port, sources[index], brokers))
        for gap in behind(sources[index], starts):
            begin, end = read.get((place_in(inputs, port), gap.partition[1]), (-1, -1))
            empty = begin == gap.position and end >= gap.start
            if not empty and not lost(port, gap):
                raise RecordsLost(gap)
        sources[index] = past(sources[index], starts)
    # By number: a former owner may have gone on meanwhile.
    arrangement.go_on(checkpoint, number, position, sources)


def count_deleted(
    checkpoint: Path, inputs: Sequence[InputPort], brokers: _BrokersOf, lost: _Lost
) -> None:
    """Tell what a query in micro-batches is about to leave out, before it does: its first batch is
    quicker than who follows its progress.

    `inputs`: those that it goes on with behind what is gone; others as in `pass_deleted`. What
    brokers do not tell is in the log, and keeps no query from its start. Raises CheckpointDamaged,
    OSError.
    """
    position = query_logs.read(checkpoint) if inputs else None
    if position is None:
        return
    for index, port in _reading(checkpoint, position, inputs):
        source = position.sources[index]
        try:
            bounds = _bounds(port, source, brokers)
        except KafkaException as error:  # librdkafka can't be told what they ask for
            log.warning(
                "what is deleted of %s before it is read is not counted: %s", port.topic, error
            )
            continue
        for gap in behind(source, _starts(bounds)):
            lost(port, gap)
        if bounds.failed:
            numbers, why = sorted(number for _, number in bounds.failed), [*bounds.failed.values()]
            log.warning(
                "what is deleted of %s, partitions %s, before it is read is not counted: %s",
                port.topic,
                numbers,
                why[0],
            )


def _reading(
    checkpoint: Path, position: Position, inputs: Sequence[InputPort]
) -> Iterator[tuple[int, InputPort]]:
    """Yield the sources that read an input, by their numbers."""
    names = arrangement.noted(checkpoint).names
    known = len(names) == len(position.sources)
    for index, source in enumerate(position.sources):
        servers = servers_of(names[index]) if known else ""
        port = next((port for port in inputs if _reads(port, source, servers)), None)
        if port is not None:  # else an edit has dropped it
            yield index, port


def _bounds(port: InputPort, source: Offsets, brokers: _BrokersOf) -> Bounds:
    keys = ((topic, int(number)) for topic in source for number in source[topic])
    return brokers(port.bootstrap_servers).bounds(keys)


def _starts(bounds: Bounds) -> Starts:
    return {key: start for key, (start, _) in bounds.found.items()}


def note_read_up(checkpoint: Path, key: tuple[str, int], position: int, end: int) -> None:
    """Have it known when retention has deleted it that no records are between two offsets."""
    found = _read_up(checkpoint) | {key: (position, end)}
    text = json.dumps([[*key, *offsets] for key, offsets in sorted(found.items())])
    write(checkpoint / _READ_UP, text)


def _read_up(checkpoint: Path) -> dict[tuple[str, int], tuple[int, int]]:
    file = checkpoint / _READ_UP
    if not file.exists():
        return {}
    with reading(file):
        return {(row[0], row[1]): (row[2], row[3]) for row in json.loads(file.read_text())}


def behind(source: Offsets, starts: Starts) -> list[Gap]:
    """Return what lies between the positions in a source and where its logs start. Pure."""
    found = [
        Gap((topic, int(number)), position, starts.get((topic, int(number)), 0))
        for topic, positions in source.items()
        for number, position in positions.items()
    ]
    return [gap for gap in found if gap.position < gap.start]


def past(source: Offsets, starts: Starts) -> Offsets:
    """Return the positions in a source, none of them before a log's start. Pure."""
    return {
        topic: {
            number: max(position, starts.get((topic, int(number)), position))
            for number, position in positions.items()
        }
        for topic, positions in source.items()
    }


def _reads(port: InputPort, source: Offsets, servers: str) -> bool:
    return port.topic in source and servers in ("", port.bootstrap_servers)
