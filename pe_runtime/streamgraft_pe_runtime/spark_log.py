"""The logs of a streaming query's checkpoint: what its shards have committed. Pure.

Spark writes `offsets/<batch>` before a batch and `commits/<batch>` behind it. The first line is the
version of the format. In the offset log the batch itself follows (watermark, time, settings), then
a line per source: a JSON object {topic: {partition: offset}}, or a dash without offsets. Before its
first batch a query's positions are in `sources/<number>/0`.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

Offsets = Mapping[str, Mapping[str, int]]
"""Topic → partition → next offset to read, of one source."""
StartOf = Callable[[str, int], int]
"""Topic, partition → the offset at which a shard begins that no query has run yet."""
_NO_OFFSETS = "-"
_TIME, _WATERMARK, _NEXT_WATERMARK = "batchTimestampMs", "batchWatermarkMs", "nextBatchWatermarkMs"


def offsets_of(line: str) -> Offsets:
    """Return what a source's line of the offset log says; nothing if it has none yet."""
    found: Offsets = {} if line == _NO_OFFSETS else json.loads(line)
    return found


class NotJoinable(Exception):
    """Shards whose logs don't fit into one; the message says what differs."""


@dataclass(frozen=True)
class Position:
    """How far a query, or a shard of it, has come."""

    sources: tuple[Offsets, ...]
    """Where its next batch begins, by source."""
    batch: Mapping[str, Any] | None = None
    """Entry of the last batch in the offset log, besides the sources; None if there was none."""
    commit: Mapping[str, Any] | None = None
    """Entry of the last batch in the commit log; None if there was none."""
    version: tuple[str, str] = ("v1", "v1")
    """Of the formats of both logs."""
    state: Mapping[int, str] = field(default_factory=dict)
    """Shard → id of the state that it goes on from (joint_state.py)."""

    @classmethod
    def parse(cls, offsets: str, commit: str) -> Self:
        """Return what the last entries of both logs say. Raises ValueError."""
        version, batch, *sources = offsets.splitlines()
        commit_version, committed, *_ = commit.splitlines()
        return cls(
            tuple(map(offsets_of, sources)),
            json.loads(batch),
            json.loads(committed),
            (version, commit_version),
        )

    @classmethod
    def initial(cls, sources: Sequence[str]) -> Self:
        """Return what a query without a batch has written of its sources."""
        # Spark begins the file with a zero byte and the format's version.
        return cls(tuple(json.loads(text[text.index("{") :]) for text in sources))

    def entries(self) -> tuple[str, str]:
        """Return the entries of the offset and the commit log that say the same."""
        assert self.batch is not None, "a query without a batch has no entries"
        sources = [json.dumps(source) if source else _NO_OFFSETS for source in self.sources]
        offsets = "\n".join((self.version[0], json.dumps(self.batch), *sources))
        return offsets, "\n".join((self.version[1], json.dumps(self.commit)))

    def initial_sources(self) -> list[str]:
        """Return what a query is to find of its sources, that it begins at these offsets."""
        return [f"\0v1\n{json.dumps(source)}" for source in self.sources]

    def share(self, shard: int) -> Self:
        """Return the position of one shard: that of its partition."""
        mine = tuple(
            {
                topic: {str(shard): at[str(shard)]}
                for topic, at in source.items()
                if str(shard) in at
            }
            for source in self.sources
        )
        state = {shard: self.state[shard]} if shard in self.state else {}
        return replace(self, sources=mine, state=state)

    def beginning(self, shard: int, start_of: StartOf) -> Self:
        """Return the position of another shard of the stage that no query has run yet."""
        begun = tuple(
            {topic: {str(shard): start_of(topic, shard)} for topic in source}
            for source in self.sources
        )
        return replace(self, sources=begun, state={})


def telling(positions: Mapping[int, Position]) -> dict[int, Position]:
    """Leave out the shards of queries that were cut off while they looked where each stream begins.

    No batch has ended there, and others know of more topics: such a shard is as if never run.
    """
    topics = {
        shard: {topic for source in position.sources for topic in source}
        for shard, position in positions.items()
    }
    return {
        shard: position
        for shard, position in positions.items()
        if position.batch is not None or not any(topics[shard] < more for more in topics.values())
    }


def joined(positions: Mapping[int, Position]) -> Position:
    """Return the position of a query over shards, from the shards' own. Raises NotJoinable.

    The latest time and the earliest watermark hold; one of 0 is none yet, and has no say.
    Shards may have been run by different plans of the same topics: the query has a line for each.
    """
    positions = _by_topic(positions)
    counts = {len(position.sources) for position in positions.values()}
    if len(counts) != 1:
        raise NotJoinable(f"shards {_listed(positions)} read different numbers of streams")
    ran = [position for _, position in sorted(positions.items()) if position.batch is not None]
    sources = tuple(
        _union([position.sources[number] for position in positions.values()])
        for number in range(counts.pop())
    )
    if not ran:
        return Position(sources)
    if len({position.version for position in ran}) != 1:
        raise NotJoinable(f"the checkpoints of shards {_listed(positions)} have different formats")
    batches, commits = [p.batch or {} for p in ran], [p.commit or {} for p in ran]
    watermark = _earliest(batches, _WATERMARK)
    batch = {**batches[0], _WATERMARK: watermark, _TIME: max(b.get(_TIME, 0) for b in batches)}
    commit = {**commits[0], _NEXT_WATERMARK: _earliest(commits, _NEXT_WATERMARK)}
    state = {shard: at for position in positions.values() for shard, at in position.state.items()}
    return Position(sources, batch, commit, ran[0].version, state)


def _by_topic(positions: Mapping[int, Position]) -> Mapping[int, Position]:
    """Return positions with one source a topic, in one order, if all are of the same topics."""
    found = {
        shard: {tuple(source): source for source in position.sources if len(source) == 1}
        for shard, position in positions.items()
    }
    topics = next(iter(found.values())).keys()
    for shard, position in positions.items():
        if not all(len(source) == 1 for source in position.sources):
            return positions
        if found[shard].keys() != topics:
            return positions
        if any(found[shard][tuple(source)] != source for source in position.sources):
            return positions  # a topic is read in several ways, or is in several clusters
    return {
        shard: replace(position, sources=tuple(found[shard][topic] for topic in topics))
        for shard, position in positions.items()
    }


def _union(sources: Sequence[Offsets]) -> Offsets:
    found: dict[str, dict[str, int]] = {}
    for source in sources:
        for topic, at in source.items():
            found.setdefault(topic, {}).update(at)
    return found


def _earliest(entries: Sequence[Mapping[str, Any]], name: str) -> int:
    return min((entry[name] for entry in entries if entry.get(name)), default=0)


def _listed(shards: Mapping[int, Position]) -> str:
    return ", ".join(map(str, sorted(shards)))
