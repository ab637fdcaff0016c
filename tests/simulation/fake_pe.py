"""What a PE's pod does without Spark: checkpoints, batches and time, under the real protocol.

`streamgraft_pe_runtime.protocol` decides which shards run, and says what there is to say: the very
code of a pod. What a process really does is noted in `Truth` the moment it does it; what it says
arrives later, or never.
"""

import asyncio
import logging
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tests.simulation.applications import adl_of
from tests.simulation.fake_checkpoints import (
    Checkpoint,
    Counts,
    FakeCheckpoints,
    Origin,
    Stage,
    metadata_of,
    origin_of,
    with_state,
)
from tests.simulation.fake_joint import FakeJointQuery
from tests.simulation.fake_kube_client import FakeKubeClient
from tests.simulation.fake_records import Batch, FakeRecords

from streamgraft_common import names
from streamgraft_common.bundle import read_bundle
from streamgraft_common.joint import apart
from streamgraft_common.kube.client import Object
from streamgraft_common.pe_metadata import PeMetadata
from streamgraft_common.resources import MatchedImport, ProcessingElementSpec, Saved, Saving
from streamgraft_common.resources.processing_element import ShardStatus
from streamgraft_common.restore import NotRestorable
from streamgraft_pe_runtime.application import Code
from streamgraft_pe_runtime.bundles import Bundles, OtherCode
from streamgraft_pe_runtime.joint_query import JointQuery
from streamgraft_pe_runtime.protocol import (
    CopyDamaged,
    Left,
    Load,
    Pod,
    ProcessingElement,
    Query,
)

logging.getLogger("streamgraft_pe_runtime").addHandler(logging.NullHandler())

_STOP_SECONDS = 22.0
_FENCED = "[CONCURRENT_STREAM_LOG_UPDATE] fenced off"


class Truth(Protocol):
    """Hears what a process does with a shard."""

    def writes(self, pe: "FakePe", shard: int, epoch: int) -> None:
        """It begins to write for a shard, by a spec of this epoch."""

    def logs(self, pe: "FakePe", shard: int, batch: int) -> None:
        """A batch of a shard was logged."""

    def begins(self, pe: "FakePe", shard: int, counts: Counts) -> None:
        """It begins the shard, of which no batch is logged yet, with these counts of its keys."""

    def rests(self, pe: "FakePe", shard: int) -> None:
        """It will not write for the shard any more."""

    def copies(self, pe: "FakePe", shard: int, savepoint: str, counts: Counts) -> None:
        """It has copied the checkpoint of a shard into the savepoint of this uid."""

    def rolls_back(self, pe: "FakePe", shard: int, savepoint: str, checkpoint: Checkpoint) -> None:
        """It has put what a cut has in the place of a shard's checkpoint, for the savepoint of this
        uid."""

    def commits(self, pe: "FakePe", shard: int, savepoint: str) -> None:
        """Its sink has made final what the savepoint of this uid has of a shard."""


@dataclass(frozen=True)
class Tempo:
    """How long things take, in seconds at most."""

    warm_up: float
    plan: float
    """To read a content and to plan the queries by it, to copy checkpoints or to deal out state."""
    start: float
    stop: float
    batch: float = 20.0
    look: float = 1.0
    """To look at what a cut has: all of it is read."""


class SilentTelemetry:
    """Counts nothing."""

    def begin_anew(self) -> None:
        """Ignore it."""

    def held(self, shards: int) -> None:
        """Ignore it."""

    def failed(self, shard: int) -> None:
        """Ignore it."""

    def started(self, seconds: float) -> None:
        """Ignore it."""

    def stopped(self, seconds: float, *, clean: bool) -> None:
        """Ignore it."""


class FakePe:
    """The process in a pod."""

    def __init__(
        self,
        client: FakeKubeClient,
        pod: Object,
        tempo: Tempo,
        truth: Truth,
        checkpoints: FakeCheckpoints,
        records: FakeRecords,
        chance: random.Random,
    ) -> None:
        metadata = pod["metadata"]
        ours = Pod(metadata["namespace"], metadata["name"], metadata["uid"])
        self.pod = pod
        self.element = ProcessingElement(client, ours, SilentTelemetry())
        self._bundles = Bundles(client, ours.namespace, Path())
        self.job: str = metadata["labels"][names.LABEL_JOB]
        self.metadata = ""
        """The graph metadata of the content that is applied, as JSON."""
        self.code = ""
        """Hash of the code that its queries are made from."""
        self.stage: Stage = "", ""
        self.origin: Origin | None = None
        self.warm = False
        self.failed = False
        self.sick = False
        """Nothing that it starts gets on."""
        self.tempo = tempo
        self.truth = truth
        self.checkpoints = checkpoints
        self.records = records
        self._chance = chance

    @property
    def name(self) -> str:
        """Name of the PE that names our pod; empty until one does."""
        return self.element.own.now.key[1] if self.element.own.now else ""

    @property
    def wanted(self) -> ProcessingElementSpec | None:
        """The newest spec of the PE."""
        return self.element.own.now.spec if self.element.own.now else None

    @property
    def shards(self) -> dict[int, ShardStatus]:
        """The shards that it holds."""
        return self.element.shards

    async def run(self) -> None:
        """Do what the spec says; return once the pod is gone and everything is released, or if it
        has not the code to begin with."""
        work = asyncio.create_task(self._work())
        listening = asyncio.create_task(self.element.listen())
        try:
            await asyncio.wait({work, listening}, return_when=asyncio.FIRST_COMPLETED)
            self.failed = work.done() and isinstance(work.exception(), OtherCode)
            if work.done() and not self.failed:
                work.result()
            await self.stop()
        finally:
            work.cancel()
            listening.cancel()

    async def stop(self) -> None:
        """Release everything, as at SIGTERM, and say so."""
        await self.element.stop(_STOP_SECONDS)

    async def apply(self, content: str, metadata: str) -> "FakeStage":
        """Plan by a content, from the code that the bundle has now. Raises OtherCode."""
        parsed = metadata_of(metadata)
        if self.code != parsed.code:
            await self._load(parsed)
        await self.passes(self.tempo.plan)
        self.metadata = metadata
        self.origin = origin_of(metadata)
        folder = parsed.checkpoint_path.rpartition("/")[2]
        self.stage = self.pod["metadata"]["ownerReferences"][0]["uid"], folder
        return FakeStage(self, self.origin, metadata_of(metadata))

    async def _load(self, pe: PeMetadata) -> None:
        bundle = read_bundle(await self._bundles.read(pe))
        if not Code(bundle.adl, bundle.digest, Path()).fits(pe):
            raise OtherCode(pe)
        self.code = pe.code

    async def passes(self, longest: float) -> None:
        """Let some time pass."""
        await asyncio.sleep(self.some(longest))

    def some(self, longest: float) -> float:
        """Return how long something takes that takes so long at most."""
        return self._chance.random() * longest

    async def _work(self) -> None:
        await self.passes(self.tempo.warm_up)
        self.warm = True
        await self.element.work(self)


@dataclass(eq=False)
class FakeStage:
    """The stage that a process works on."""

    pe: FakePe
    origin: Origin
    metadata: PeMetadata
    _joint: JointQuery | None = None
    _epochs: dict[int, int] = field(default_factory=dict)
    """Shard → epoch of the spec by which it was started last."""

    def __post_init__(self) -> None:
        """Have one query for all shards, if the application's description says so."""
        if apart(self.metadata, adl_of(self.metadata.bundle_digest).operators) is None:
            self._joint = JointQuery(self._start_over)

    async def start(self, shard: int, epoch: int) -> Query:
        """Start on the checkpoint of a shard. Raises NotRestorable, or QueryFailed."""
        self._epochs[shard] = epoch
        if self._joint is not None:
            return await self._joint.start(shard)
        (query,) = await self._started([shard])
        return query

    async def leave(self, shard: int, *, publish: bool) -> Left:
        """Tell whether the last batch was cut off, by whomever."""
        return Left(self.pe.checkpoints.is_clean(self.pe.stage, shard), None)

    async def save(self, request: Saving) -> Saved:
        """Copy checkpoints. Raises OSError."""
        looks = request.rolls_back_to is not None and not request.commit
        await self.pe.passes(self.pe.tempo.look if looks else self.pe.tempo.plan)
        if self.pe.sick:
            raise OSError("the disk is full")
        return self._rolled_back(request) if request.rolls_back_to else self._copied(request)

    apart = ""

    def loads(self) -> Mapping[int, Load]:
        """Return nothing: loads only spread shards, and those are spread by number then."""
        return {}

    def behind(self) -> bool:
        """Have nothing that waits: it only delays warm pools."""
        return False

    def connect(self, imports: Sequence[MatchedImport]) -> bool:
        """Read nothing of other jobs."""
        return False

    def _rolled_back(self, request: Saving) -> Saved:
        pe = self.pe
        namespace = pe.pod["metadata"]["namespace"]
        path = names.savepoint_path(namespace, request.rolls_back_to or "")
        if not request.commit:
            if path in pe.checkpoints.damaged:
                raise CopyDamaged(f"{path} is damaged")
            return Saved(uid=request.uid, shards=request.shards)
        for shard in request.shards:
            found = pe.checkpoints.roll_back(path, pe.stage, shard)
            pe.records.roll_back(pe.stage, shard, found.logged, request.ends, self.metadata)
            pe.truth.rolls_back(pe, shard, request.uid, found)
        return Saved(uid=request.uid, shards=request.shards, committed=True)

    def _copied(self, request: Saving) -> Saved:
        pe = self.pe
        path = names.savepoint_path(pe.pod["metadata"]["namespace"], request.savepoint)
        stage = with_state(self.origin.stage)
        for shard in request.shards:
            if request.commit:  # which is asked for when all is copied
                pe.truth.commits(pe, shard, request.uid)
                continue
            counts = pe.checkpoints.save(path, stage, pe.stage, shard)
            pe.truth.copies(pe, shard, request.uid, counts)
        unclean = [n for n in request.shards if not pe.checkpoints.is_clean(pe.stage, n)]
        return Saved(
            uid=request.uid,
            shards=request.shards,
            size_bytes=1,
            committed=request.commit,
            unclean=unclean,
            state=stage.state,
        )

    async def _start_over(self, shards: Sequence[int]) -> Query:
        return FakeJointQuery(await self._started(shards))

    async def _started(self, shards: Sequence[int]) -> "list[FakeQuery]":
        for shard in shards:
            self.pe.truth.writes(self.pe, shard, self._epochs[shard])
        try:
            for shard in shards:
                await self._prepare(shard)
        except NotRestorable:
            for shard in shards:
                self.pe.truth.rests(self.pe, shard)
            raise
        await self.pe.passes(self.pe.tempo.start)
        return [FakeQuery(self.pe, shard, self.metadata) for shard in shards]

    async def _prepare(self, shard: int) -> None:
        """Make a checkpoint, of the savepoint's or empty; nobody sees it before it is whole."""
        pe = self.pe
        if not pe.checkpoints.exists(pe.stage, shard):
            counts = pe.checkpoints.first_counts(self.origin, shard)
            if self.origin.savepoint:
                await pe.passes(pe.tempo.plan)
            pe.checkpoints.create(pe.stage, shard, counts)
        if (first := pe.checkpoints.untouched(pe.stage, shard)) is not None:
            pe.truth.begins(pe, shard, first)


class FakeQuery:
    """Runs batch after batch until it is stopped, or fenced off."""

    def __init__(self, pe: FakePe, shard: int, metadata: PeMetadata) -> None:
        self._pe = pe
        self._shard = shard
        self._metadata = metadata
        self._timer: asyncio.TimerHandle | None = None
        self.failed: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Done once it was fenced off."""

    async def first_batch(self) -> None:
        """Return once it gets on."""
        while self._pe.sick:
            await asyncio.sleep(1.0)
        self._begin_batch()

    async def failure(self) -> str:
        """Return once it was fenced off."""
        return await asyncio.shield(self.failed)

    def fail(self, why: str) -> None:
        """End amid a batch, unless it has ended so."""
        if self._timer:
            self._timer.cancel()
        if not self.failed.done():
            self._pe.truth.rests(self._pe, self._shard)
            self.failed.set_result(why)

    async def stop(self, deadline_seconds: float) -> bool:
        """Stop at a batch boundary, unless it has failed."""
        if self._timer:
            self._timer.cancel()
        if not self.failed.done():
            await self._pe.passes(self._pe.tempo.stop)
            self._pe.checkpoints.settle(self._pe.stage, self._shard)
            self._pe.truth.rests(self._pe, self._shard)
        return True

    def _begin_batch(self) -> None:
        pe = self._pe
        number = pe.checkpoints.next_batch(pe.stage, self._shard)
        batch = pe.records.plan(pe.stage, self._shard, number, self._metadata)
        half = pe.some(pe.tempo.batch) / 2
        self._timer = asyncio.get_running_loop().call_later(half, self._write, batch, half)

    def _write(self, batch: Batch, half: float) -> None:
        if self._pe.records.is_fenced(self._pe.stage, self._shard, batch):
            self.fail(_FENCED)
            return
        self._pe.records.write(self._pe.stage, self._shard, batch, self._metadata)
        self._timer = asyncio.get_running_loop().call_later(half, self._end_batch, batch)

    def _end_batch(self, batch: Batch) -> None:
        pe = self._pe
        fenced = pe.records.is_fenced(pe.stage, self._shard, batch)
        if not fenced and pe.checkpoints.log(pe.stage, self._shard, batch.number):
            pe.truth.logs(pe, self._shard, batch.number)
            pe.records.log(pe.stage, self._shard, batch, self._metadata)
            pe.checkpoints.settle(pe.stage, self._shard)
            self._begin_batch()
            return
        self.fail(_FENCED)
