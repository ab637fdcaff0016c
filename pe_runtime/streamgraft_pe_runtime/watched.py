"""A query as its progress is followed: what was read of it last."""

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from streamgraft_common.pe_metadata import InputPort
from streamgraft_pe_runtime.checkpoint_health import CheckpointDamaged
from streamgraft_pe_runtime.positions import Positions, read_checkpoint
from streamgraft_pe_runtime.protocol import Load
from streamgraft_pe_runtime.query import ShardQuery
from streamgraft_pe_runtime.scan_order import topic_of
from streamgraft_pe_runtime.topic_ids import Ids, TopicReplaced, Topics

log = logging.getLogger(__name__)

LOAD_SECONDS = 30.0
"""Period over which the load of shards is measured."""


@dataclass
class Watched:
    """A query of this PE, and the shards that it runs."""

    shards: Sequence[int]
    query: ShardQuery
    checkpoint: Path
    positions: Positions
    unclean: bool
    """Whether the batch that it begins with was begun before, and runs again."""
    scans: Sequence[str] = ()
    """Their names, in the order of its sources."""
    topics: Topics | None = None
    """Those that it reads."""
    batch: int = -1
    last_batch_at: str | None = None
    stateful: bool = False
    partitions: dict[InputPort, list[tuple[str, int]]] = field(default_factory=dict)
    since: float = field(default_factory=time.monotonic)
    batch_seconds: dict[int, float] = field(default_factory=dict)
    """Time that batches took, by the shards whose records they had."""
    lags: dict[tuple[str, int], int] = field(default_factory=dict)
    loads: dict[int, Load] = field(default_factory=dict)
    behind: bool = False
    """Whether what waits would fill half a batch or more."""
    collecting: threading.Lock = field(default_factory=threading.Lock)

    def measure_load(self, now: float) -> None:
        """Note the load of each shard over the last period, if that is long enough by now.

        `now`: of the monotonic clock, in seconds. In real-time mode one batch follows the other,
        with or without records, so how long they take says nothing.
        """
        if (elapsed := now - self.since) < LOAD_SECONDS:
            return
        for shard in self.shards:
            share = min(1.0, self.batch_seconds.get(shard, 0.0) / elapsed)
            busy = None if self.query.real_time else round(share, 2)
            alone = len(self.shards) == 1
            lag = sum(lag for (_, number), lag in self.lags.items() if alone or number == shard)
            self.loads[shard] = Load(busy, lag)
        self.since, self.batch_seconds = now, {}

    def check_topics(self, now: Ids) -> None:
        """Have the query fail if it goes on in another topic, made anew while it runs."""
        if self.topics is None:
            return
        try:
            self.topics.confirm(now)
        except TopicReplaced as error:
            self.query.give_up(str(error))
        except (CheckpointDamaged, OSError) as error:  # the next look is in half a minute
            log.warning("the topics of shards %s were not compared: %s", self.shards, error)

    def read(self) -> set[tuple[str, int]]:
        """Return the partitions of all inputs that it reads."""
        return {key for keys in list(self.partitions.values()) for key in keys}

    def position(self, key: tuple[str, int]) -> int:
        """Return the next offset that it reads of a partition, -1 if that is not known."""
        place, number = key
        # Its plan may read the topic in one of two clusters only.
        return self.positions.get(key, self.positions.get((topic_of(place), number), -1))

    @property
    def may_have_read(self) -> bool:
        """Whether a batch is under way that may have read what is behind the committed position."""
        try:
            return not self.unclean and not read_checkpoint(self.checkpoint).clean
        except CheckpointDamaged:
            return True  # nobody knows
