"""The records in Kafka between stages: who wrote them, in which batch, and how far they were read.

A source's batch makes one record; every other batch passes on what it reads. A batch that is cut
off is planned: it runs again over the very same records. What a batch writes and its entry in the
ledger are one transaction, in the middle of the batch, as in the exactly-once sink. A shard that is
rolled back fences what it had running, and goes on at the ends of its inputs; what is before these
ends may come again.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.simulation.fake_checkpoints import Stage

from streamgraft_common import names
from streamgraft_common.pe_metadata import PeMetadata

Partition = tuple[str, int, int]
"""Topic, how often a topic of that name was deleted before, number."""
Ends = Mapping[str, Sequence[int]]
"""Topic → the end of each of its partitions."""
Record = tuple[Stage, int, int]
"""Stage, shard and batch that it comes from; the stage's name ends in a number for each stage that
it went through which had been dropped before."""


@dataclass(frozen=True)
class Batch:
    """A planned batch: what it reads, from and up to which offsets."""

    number: int
    ranges: tuple[tuple[Partition, int, int], ...]
    rollbacks: int = 0
    """Of its shard, before it was planned."""


@dataclass
class Log:
    """What a shard keeps of its batches."""

    positions: dict[Partition, int] = field(default_factory=dict)
    planned: Batch | None = None
    rollbacks: int = 0


class FakeRecords:
    """All internal topics. `broken` hears of records that come twice."""

    def __init__(self) -> None:
        self.broken: list[str] = []
        self._records: dict[Partition, list[Record]] = defaultdict(list)
        self._deletions: dict[str, int] = defaultdict(int)
        self._logs: dict[tuple[Stage, int], Log] = defaultdict(Log)
        self._ledger: dict[tuple[Stage, int], int] = {}
        self._committed: dict[tuple[str, Partition], int] = {}
        self._read: dict[Partition, int] = {}
        self._void: dict[Partition, int] = {}
        """Up to where records were let go of by rollbacks."""

    def plan(self, stage: Stage, shard: int, number: int, metadata: PeMetadata) -> Batch:
        """Plan a batch, or return the plan of the same batch that was cut off."""
        log = self._logs[stage, shard]
        if log.planned is None or log.planned.number != number:
            ranges = [
                (partition, log.positions.get(partition, 0), len(self._records[partition]))
                for partition in self._inputs(metadata, shard)
            ]
            log.planned = Batch(number, tuple(ranges), log.rollbacks)
        return log.planned

    def write(self, stage: Stage, shard: int, batch: Batch, metadata: PeMetadata) -> None:
        """Write what a batch makes, unless the ledger says that it is written."""
        if self.is_written(stage, shard, batch.number):
            return
        self._ledger[stage, shard] = batch.number
        made = [
            record
            for partition, first, end in batch.ranges
            for record in self._records[partition][first:end]
        ]
        if not any(not port.external for port in metadata.inputs):
            made = [(stage, shard, batch.number)]
        if life := stage[1].partition(".")[2]:  # it reads anew what was read before it was dropped
            made = [((uid, f"{name}.{life}"), at, number) for (uid, name), at, number in made]
        for port in metadata.outputs:
            if not port.external:
                number = shard if port.keep_partition else batch.number % (port.partitions or 1)
                self._append(self._partition(port.topic, number), made)

    def is_fenced(self, stage: Stage, shard: int, batch: Batch) -> bool:
        """Return whether a shard was rolled back since a batch was planned."""
        return self._logs[stage, shard].rollbacks != batch.rollbacks

    def roll_back(
        self, stage: Stage, shard: int, logged: int, ends: Ends, metadata: PeMetadata
    ) -> None:
        """Let a shard go on behind so many batches, and with its inputs at these ends."""
        log = self._logs[stage, shard]
        log.planned, log.rollbacks = None, log.rollbacks + 1
        self._ledger[stage, shard] = logged - 1
        for partition in self._inputs(metadata, shard):
            topic, _, number = partition
            if topic in ends:
                log.positions[partition] = self._void[partition] = ends[topic][number]
                self._read[partition] = max(self._read.get(partition, 0), ends[topic][number])

    def is_written(self, stage: Stage, shard: int, number: int) -> bool:
        """Return whether a batch of a shard is in the ledger."""
        return self._ledger.get((stage, shard), -1) >= number

    def log(self, stage: Stage, shard: int, batch: Batch, metadata: PeMetadata) -> None:
        """Log a batch as read, and publish how far."""
        log = self._logs[stage, shard]
        group = names.consumer_group(metadata.namespace, metadata.job, metadata.stage_name)
        for partition, _, end in batch.ranges:
            log.positions[partition] = self._committed[group, partition] = end
            self._read[partition] = max(self._read.get(partition, 0), end)

    def delete(self, topic: str) -> None:
        """Delete a topic; one that is made under its name is another."""
        self._deletions[topic] += 1

    def committed(self, group: str, topic: str, number: int) -> int:
        """Return the position that a consumer group has published."""
        return self._committed.get((group, self._partition(topic, number)), 0)

    def end(self, topic: str, number: int) -> int:
        """Return the end offset of a partition."""
        return len(self._records[self._partition(topic, number)])

    def unread(self, topics: Collection[str]) -> list[str]:
        """Return the partitions of topics with records that nobody has read."""
        return sorted(
            f"{topic}/{number}"
            for (topic, life, number), records in self._records.items()
            if topic in topics and life == self._deletions[topic]
            if len(records) > self._read.get((topic, life, number), 0)
        )

    def _inputs(self, metadata: PeMetadata, shard: int) -> list[Partition]:
        return [
            self._partition(port.topic, number)
            for port in metadata.inputs
            if not port.external
            for number in ([shard] if metadata.region else range(port.partitions or 1))
        ]

    def _partition(self, topic: str, number: int) -> Partition:
        return topic, self._deletions[topic], number

    def _append(self, partition: Partition, made: Iterable[Record]) -> None:
        there = self._records[partition]
        known = set(there[self._void.get(partition, 0) :])
        for record in made:
            if record in known:
                self.broken.append(f"{record} is in {partition[0]}/{partition[2]} twice")
            there.append(record)
