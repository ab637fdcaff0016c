"""What the protocol needs done, by the driver. Calls to Spark block; each takes a thread."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from streamgraft_common.content import Content
from streamgraft_common.pe_metadata import PeMetadata
from streamgraft_common.resources import Saved, Saving
from streamgraft_pe_runtime.driver import Driver
from streamgraft_pe_runtime.metrics import PeMetrics
from streamgraft_pe_runtime.positions import read_checkpoint
from streamgraft_pe_runtime.progress import Progress
from streamgraft_pe_runtime.protocol import Left, Load
from streamgraft_pe_runtime.query import ShardQuery
from streamgraft_pe_runtime.savepoints import Storage

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.2
_FIRST_BATCH_POLL_SECONDS = 0.05


@dataclass(frozen=True)
class SparkQuery:
    """A query that was started."""

    query: ShardQuery

    async def first_batch(self) -> None:
        """Return once the first trigger since the start has completed."""
        while not await asyncio.to_thread(self.query.first_trigger_done):
            await asyncio.sleep(_FIRST_BATCH_POLL_SECONDS)

    async def failure(self) -> str:
        """Return once the query has ended by itself: why."""
        while (failure := await asyncio.to_thread(self.query.failure)) is None:
            await asyncio.sleep(_POLL_SECONDS)
        return failure

    async def stop(self, deadline_seconds: float) -> bool:
        """Stop at a batch boundary; False if the deadline passed and a batch was cut off."""
        return await asyncio.to_thread(self.query.stop, deadline_seconds)


@dataclass(frozen=True)
class SparkStage:
    """The stage that the PE works on."""

    driver: Driver
    storage: Storage
    progress: Progress
    shard_count: int

    async def start(self, shard: int, epoch: int) -> SparkQuery:
        """Start the query of a shard, on its checkpoint."""
        log.info("starting shard %d of epoch %d", shard, epoch)
        return SparkQuery(await asyncio.to_thread(self._start, shard))

    async def leave(self, shard: int, *, publish: bool) -> Left:
        """Forget a shard whose query is stopped; `publish` where it ended."""
        return await asyncio.to_thread(self._leave, shard, publish)

    async def save(self, request: Saving) -> Saved:
        """Copy checkpoints into a savepoint. Raises OSError."""
        return await asyncio.to_thread(self.storage.save, request)

    def loads(self) -> Mapping[int, Load]:
        """Return the loads of the shards that run."""
        return self.progress.loads()

    def _start(self, shard: int) -> ShardQuery:
        checkpoint = self.storage.checkpoint(shard)
        self.storage.prepare(shard)
        query = self.driver.start(shard, checkpoint)
        self.progress.watch(shard, query, checkpoint)
        return query

    def _leave(self, shard: int, publish: bool) -> Left:
        checkpoint = self.storage.checkpoint(shard)
        clean = read_checkpoint(checkpoint).clean
        return Left(clean, self.progress.release(shard, checkpoint, publish=publish))


class SparkWork:
    """A driver that is up."""

    def __init__(self, driver: Driver, metrics: PeMetrics, checkpoint_root: Path) -> None:
        self._driver = driver
        self._metrics = metrics
        self._root = checkpoint_root
        self._progress: Progress | None = None
        self._stages: list[SparkStage] = []
        self._applied = asyncio.Event()

    async def apply(self, content: str, metadata: str) -> SparkStage:
        """Take up a content of the PE. Raises what the application raises."""
        plan = Content.parse(content).plan
        parsed = PeMetadata.model_validate_json(metadata)
        stage = await asyncio.to_thread(self._apply, plan, parsed)
        self._stages = [stage]
        self._applied.set()
        return stage

    async def stage(self) -> SparkStage:
        """Return the stage that was applied last, once there is one."""
        await self._applied.wait()
        return self._stages[-1]

    def _apply(self, plan: str, metadata: PeMetadata) -> SparkStage:
        self._driver.apply(plan, metadata)
        if self._progress is None:
            self._progress = Progress(metadata, self._metrics, self._driver.busy_seconds)
        else:
            self._progress.replan(metadata)
        storage = Storage(self._root, metadata, self._driver.adl, self._driver.stores)
        return SparkStage(self._driver, storage, self._progress, metadata.shard_count)
