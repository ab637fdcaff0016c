"""What the protocol needs done, by the driver. Calls to Spark block; each takes a thread."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from streamgraft_common.content import Content
from streamgraft_common.pe_metadata import InputPort, PeMetadata
from streamgraft_common.resources import MatchedImport, Saved, Saving
from streamgraft_pe_runtime import (
    alignment,
    late_batches,
    log_starts,
    lost_checkpoints,
    shard_names,
)
from streamgraft_pe_runtime.bundles import Bundles
from streamgraft_pe_runtime.checkpoint_health import CheckpointDamaged, check
from streamgraft_pe_runtime.driver import Driver
from streamgraft_pe_runtime.joint_checkpoints import (
    CheckpointPutBack,
    JointCheckpoints,
    is_joint,
)
from streamgraft_pe_runtime.joint_query import JointQuery, QueryFailed
from streamgraft_pe_runtime.ledgers import Begun, Entry
from streamgraft_pe_runtime.losses import Gap
from streamgraft_pe_runtime.metrics import PeMetrics
from streamgraft_pe_runtime.modes import OtherMode, may_be_repeated
from streamgraft_pe_runtime.progress import Progress
from streamgraft_pe_runtime.protocol import Left, Load, Query
from streamgraft_pe_runtime.query import ShardQuery, StillRuns
from streamgraft_pe_runtime.query_logs import is_cut_off
from streamgraft_pe_runtime.repository import Repository
from streamgraft_pe_runtime.savepoints import Storage
from streamgraft_pe_runtime.shard_names import TakenByAnother
from streamgraft_pe_runtime.topic_ids import Topics

log = logging.getLogger(__name__)

_Result = TypeVar("_Result")
_POLL_SECONDS = 0.2
_FIRST_BATCH_POLL_SECONDS = 0.05
_END_BATCH_POLL_SECONDS = 0.02
_END_BATCH_SECONDS = 30.0
_NOT_KNOWN = (QueryFailed, TakenByAnother, OtherMode, CheckpointDamaged, CheckpointPutBack)
"""Why a savepoint has to wait."""
_NOT_ENDED = (
    "a batch over shards {} was cut off, and since the last edit the plan may mix their rows ({}):"
    " undo the edit, let the query run until it can be stopped, and then edit again, or restore a"
    " savepoint"
)
"""What only a plan that keeps shards apart can end: which rows are whose state, and in which
partition they were, is in no log."""


@dataclass(frozen=True)
class SparkQuery:
    """A query that was started."""

    query: ShardQuery
    stuck: Callable[[str], None]
    """Ends the process, for the reason given."""

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
        return await _unless_stuck(asyncio.to_thread(self.query.stop, deadline_seconds), self.stuck)


async def _unless_stuck(work: Awaitable[_Result], stuck: Callable[[str], None]) -> _Result:
    """Return what `work` does, unless a batch that was cut off does not end: then the process does.

    Until then nobody else may have the shard, and nobody may start it again: this does not return.
    """
    try:
        return await work
    except StillRuns as error:
        stuck(str(error))
        never: asyncio.Future[_Result] = asyncio.get_running_loop().create_future()
        return await never


class SparkStage:
    """The stage that the PE works on."""

    def __init__(
        self,
        driver: Driver,
        storage: Storage,
        progress: Progress,
        metadata: PeMetadata,
        stuck: Callable[[str], None] = log.error,
    ) -> None:
        """`stuck`: ends the process, for the reason given; called in the event loop."""
        self.progress = progress
        self.shard_count = metadata.shard_count
        self._driver = driver
        self._storage = storage
        self._metadata = metadata
        self._stuck = stuck
        self._checkpoints = JointCheckpoints(
            storage.folder, self._end_batch, driver.state_provider, self._noted
        )
        self._places: dict[int, Path] = {}
        """The checkpoint of the query that has, or had, a shard."""
        self._joint = JointQuery(self._start_joint) if driver.joint else None
        self.apart = driver.obstacle
        """Why each shard has a query of its own though all could share one; '' if not so."""

    async def start(self, shard: int, epoch: int) -> Query:
        """Start the query of a shard, or the one of all with it as well."""
        log.info("starting shard %d of epoch %d", shard, epoch)
        if self._joint is not None:
            return await self._joint.start(shard)
        return await _unless_stuck(asyncio.to_thread(self._start_alone, shard), self._stuck)

    async def leave(self, shard: int, *, publish: bool) -> Left:
        """Forget a shard whose query is stopped; `publish` where it ended."""
        return await asyncio.to_thread(self._leave, shard, publish)

    async def save(self, request: Saving) -> Saved:
        """Copy checkpoints into a savepoint, and commit a cut. Raises OSError or NotCommitted."""
        return await _unless_stuck(asyncio.to_thread(self._save, request), self._stuck)

    def loads(self) -> Mapping[int, Load]:
        """Return the loads of the shards that run."""
        return self.progress.loads()

    def behind(self) -> bool:
        """Return whether what waits for a query would fill half a batch or more."""
        return self.progress.behind()

    def connect(self, imports: Sequence[MatchedImport]) -> bool:
        """Have imports read these topics from now on; return whether queries must start anew."""
        if self._driver.connect(imports):
            return True  # the start tells of the topics
        self._telling = asyncio.create_task(asyncio.to_thread(self._driver.read_on))
        return False

    async def _start_joint(self, shards: Sequence[int]) -> Query:
        return await _unless_stuck(asyncio.to_thread(self._start_over, shards), self._stuck)

    def _start_over(self, shards: Sequence[int]) -> Query:
        began = time.monotonic()
        topics = self._prepare(shards)
        checkpoint = self._checkpoints.take_over(shards, self._start_of)
        log.info("shards %s taken over in %.3f s", shards, time.monotonic() - began)
        query = self._started(shards, checkpoint, topics)
        try:
            self._checkpoints.sweep()
        except OSError as error:  # another time: the query runs
            log.warning("checkpoints that are over were not removed: %s", error)
        return query

    def _start_alone(self, shard: int) -> Query:
        topics = self._prepare([shard])
        return self._started([shard], self._checkpoints.take_alone(shard), topics)

    def _prepare(self, shards: Sequence[int]) -> Topics:
        """Make shards of a restored job ready to be taken over; return what is read, which is known
        to be that of before, as far as brokers tell, ere a batch that was cut off reads it.

        A checkpoint that is lost is refused: the savepoint is of before it, and its records are
        written.
        """
        stage, inputs = self._storage.folder, self._metadata.inputs
        ledgers = self._driver.ledgers(self._metadata)
        lost_checkpoints.check(stage, lambda: lost_checkpoints.written(ledgers, stage))
        for shard in shards:
            self._checkpoints.check_left(shard)
            self._storage.prepare(shard)
        topics = Topics(map(self._storage.checkpoint, shards), inputs)
        topics.confirm(self._driver.ids_of(inputs, topics.noted()))
        return topics

    def _started(self, shards: Sequence[int], checkpoint: Path, topics: Topics) -> Query:
        check(checkpoint)
        inputs, brokers = self._metadata.inputs, self.progress.brokers
        if self._metadata.real_time:
            log_starts.pass_deleted(checkpoint, inputs, brokers, self._lost)
        else:
            leaky = [port for port in inputs if self._driver.may_lose(port)]
            log_starts.count_deleted(checkpoint, leaky, brokers, self._lost)
        names = [self._checkpoints.names[shard] for shard in shards]
        query = self._driver.start(shards, checkpoint, names, joint=is_joint(checkpoint))
        try:
            self.progress.watch(shards, query, checkpoint, topics)
        except Exception:  # nobody would stop it
            query.stop(0)
            raise
        self._places.update(dict.fromkeys(shards, checkpoint))
        return SparkQuery(query, self._stuck)

    def _lost(self, port: InputPort, gap: Gap) -> bool:
        self.progress.left_out.lose(gap)
        return self._driver.may_lose(port)

    def _end_batch(self, checkpoint: Path, shards: Sequence[int]) -> None:
        """Run the query of a former owner until the batch that was cut off is committed."""
        log.info("ending the batch that was cut off in %s", checkpoint)
        names = shard_names.held(map(self._storage.checkpoint, shards))
        query = self._driver.start(shards, checkpoint, names, joint=is_joint(checkpoint))
        try:
            while is_cut_off(checkpoint):
                if failure := query.failure():
                    mixing = alignment.refusal(failure)
                    raise QueryFailed(_NOT_ENDED.format(shards, mixing) if mixing else failure)
                time.sleep(_END_BATCH_POLL_SECONDS)
        finally:
            query.stop(_END_BATCH_SECONDS)

    def _noted(self, begun: Collection[Begun]) -> Mapping[Begun, Entry]:
        return self._driver.ledgers(self._metadata).shared(begun)

    def _start_of(self, topic: str, partition: int) -> int:
        """Return where a shard begins that nobody has run. Raises OSError, KafkaException."""
        port = next((port for port in self._metadata.inputs if port.topic == topic), None)
        if port is None:
            return 0  # an edit has dropped it, and nobody reads on
        brokers = self.progress.brokers(port.bootstrap_servers)
        bounds = brokers.bounds([key := (topic, partition)])
        if why := bounds.failed.get(key):
            raise OSError(f"where partition {partition} of {topic} begins is not known: {why}")
        return bounds.found[key][self._driver.starts_at_latest(port)]

    def _save(self, request: Saving) -> Saved:
        if request.rolls_back_to is not None:
            if not request.commit:
                return self._storage.look_at(request)
            return self._storage.roll_back(request, self._checkpoints.left_behind)
        self._storage.claim(request)
        place = self._storage.place(request)
        try:
            for shard in request.shards:
                late_batches.note(place, request.uid, self._checkpoints.cut_off_with(shard))
            for shard in request.shards:  # which nobody runs
                if not self._checkpoints.is_alone(shard):
                    self._checkpoints.take_alone(shard)
        except _NOT_KNOWN as error:
            raise OSError(f"where shards are is not known yet: {error}") from error
        saved = self._storage.save(request)
        late = late_batches.noted(place, request.uid, request.shards)
        self._storage.remove_earlier(request)
        return saved.model_copy(update={"unclean": sorted({*saved.unclean, *late})})

    def _leave(self, shard: int, publish: bool) -> Left:
        started = self._places.pop(shard, None)
        checkpoint = started or self._storage.checkpoint(shard)
        try:
            if started is None:  # by us: the pod before us may have died amid a batch
                checkpoint = self._checkpoints.checkpoint(shard)
            clean = not is_cut_off(checkpoint) and not may_be_repeated(checkpoint)
            return Left(clean, self.progress.release(shard, checkpoint, publish=publish))
        except (CheckpointDamaged, OSError) as error:
            log.warning("shard %d: where it ended is not known: %s", shard, error)
            return Left(False, self.progress.release(shard, checkpoint, publish=False))


class SparkWork:
    """A driver that is up."""

    def __init__(
        self,
        driver: Driver,
        metrics: PeMetrics,
        checkpoint_root: Path,
        bundles: Bundles,
        copies: Repository | None,
        stuck: Callable[[str], None],
    ) -> None:
        """`stuck`: ends the process, for the reason given; called in the event loop."""
        self._driver = driver
        self._bundles = bundles
        self._metrics = metrics
        self._root = checkpoint_root
        self._copies = copies
        self._stuck = stuck
        self._progress: Progress | None = None
        self._stages: list[SparkStage] = []
        self._applied = asyncio.Event()

    async def apply(self, content: str, metadata: str) -> SparkStage:
        """Take up a content of the PE. Raises what the application raises, or OtherCode."""
        queries = Content.parse(content).queries
        parsed = PeMetadata.model_validate_json(metadata)
        bundle = None
        if not self._driver.code.fits(parsed):
            bundle = await self._bundles.read(parsed)
        stage = await asyncio.to_thread(self._apply, queries, parsed, bundle)
        self._stages = [stage]
        self._applied.set()
        return stage

    async def stage(self) -> SparkStage:
        """Return the stage that was applied last, once there is one."""
        await self._applied.wait()
        return self._stages[-1]

    def _apply(self, queries: str, metadata: PeMetadata, bundle: bytes | None) -> SparkStage:
        self._driver.apply(queries, metadata, bundle)
        if self._progress is None:
            self._progress = Progress(metadata, self._metrics, self._driver)
        else:
            self._progress.replan(metadata)
        driver = self._driver
        sink = driver.cut_sink(metadata)
        storage = Storage(self._root, metadata, driver.code.adl, driver.stores, sink, self._copies)
        return SparkStage(self._driver, storage, self._progress, metadata, self._stuck)
