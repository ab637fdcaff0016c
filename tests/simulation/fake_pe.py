"""The process in a PE's pod, without Spark: it follows the hand-over rule of docs/contracts.md.

It starts a shard when it sees it in its spec, stops it at a batch boundary when it is gone from
there, and only then takes it out of `status.runtime`. If another pod has logged its batch it stops
too, until the API server confirms that the shard is its own. What it really does is told to `Truth`
the moment it does it; what it says arrives later, or never.
"""

import asyncio
import random
from dataclasses import dataclass
from typing import Any, Protocol

from tests.simulation.fake_checkpoints import (
    Counts,
    FakeCheckpoints,
    Origin,
    Stage,
    origin_of,
    with_state,
)
from tests.simulation.fake_kube_client import FakeKubeClient
from tests.simulation.virtual_time import EPOCH

from streamgraft_common import names
from streamgraft_common.content import Change, Content, classify
from streamgraft_common.kinds import CONFIG_MAP
from streamgraft_common.kube import ApiError, NotFound, Store, Unreachable
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import (
    PROCESSING_ELEMENT,
    ProcessingElementSpec,
    Release,
    RuntimeStatus,
    Saved,
    Saving,
)
from streamgraft_common.resources.processing_element import ShardStatus
from streamgraft_common.savepoints import NotRestorable
from streamgraft_common.timestamps import to_rfc3339
from streamgraft_operator.kit.objects import content_of
from streamgraft_operator.kit.parsed import pe_spec
from streamgraft_pe_runtime.own_pod import gone, own_pod
from streamgraft_pe_runtime.runtime_status import applied, merge_patch

RESTART = Change.RESTART


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


@dataclass(frozen=True)
class Tempo:
    """How long things take, in seconds at most."""

    warm_up: float
    plan: float
    """To read a content and to plan the queries by it, to copy checkpoints or to deal out state."""
    start: float
    stop: float
    batch: float = 20.0


class FakePe:
    """One process. `name` and `content` (the PE's ConfigMap) are known once a PE names its pod."""

    def __init__(
        self,
        client: FakeKubeClient,
        pod: Object,
        tempo: Tempo,
        truth: Truth,
        checkpoints: FakeCheckpoints,
        chance: random.Random,
    ) -> None:
        metadata = pod["metadata"]
        self.pod = pod
        self.content: Object | None = None
        self.stage: Stage = "", ""
        self.origin: Origin | None = None
        self.name = ""
        self.job: str = metadata["labels"][names.LABEL_JOB]
        self.warm = False
        self.sick = False
        self.shards: dict[int, ShardStatus] = {}
        self.wanted: ProcessingElementSpec | None = None
        self._client = client
        self._tempo = tempo
        self._truth = truth
        self._checkpoints = checkpoints
        self._chance = chance
        self._releases: dict[str, Release] = {}
        self._epoch = 0
        self._launch_count = 0
        self._content_id = ""
        self._known: dict[str, Any] = {}
        self._stopping = False
        self._disowned = False
        self._dirty = asyncio.Event()
        self._looked = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._batches: dict[int, asyncio.TimerHandle] = {}
        self._saving: asyncio.Future[None] | None = None
        self._saved: Saved | None = None
        self._store = Store(
            client,
            PROCESSING_ELEMENT.path(metadata["namespace"]),
            fieldSelector=f"status.pod={metadata['name']}",
        )
        self._pods = own_pod(client, metadata["namespace"], metadata["name"])

    async def run(self) -> None:
        """Do what the spec says; return once the pod is gone and everything is released."""
        work = asyncio.create_task(self._work())
        await gone(self._pods, self.pod["metadata"]["uid"])
        self._disowned = True
        await self.stop()
        work.cancel()

    async def _work(self) -> None:
        """Warm up, then do what the spec says, until cancelled."""
        self._store.listen(lambda _, __, item: self._seen(item))
        async with asyncio.TaskGroup() as group:
            group.create_task(self._store.run())
            group.create_task(self._pods.run())
            group.create_task(self._report())
            await asyncio.sleep(self._some(self._tempo.warm_up))
            self.warm = True
            group.create_task(self._follow_content())

    async def _follow_content(self) -> None:
        """Read the ConfigMap whenever the PE has another content; apply it if that is possible."""
        seen = ""
        while True:
            looked = self._looked
            if not self.name or self._content_id == seen:
                await looked.wait()
                continue
            wanted = self._content_id
            item = await self._config_map()
            if content_of(item) != wanted:
                await asyncio.sleep(0.5)
                continue
            seen = wanted
            if self.content and classify(*map(Content.parse, (self._applied(), seen))) is RESTART:
                continue  # a new pod will have it
            await asyncio.sleep(self._some(self._tempo.plan))
            self._apply(item)

    async def _config_map(self) -> Object | None:
        try:
            namespace = self.pod["metadata"]["namespace"]
            return await self._client.get(CONFIG_MAP.path(namespace, self.name))
        except (ApiError, Unreachable):
            return None

    def _apply(self, item: Object | None) -> None:
        assert item is not None
        self.content = item
        self.origin = origin_of(item["data"][names.PE_METADATA_KEY])
        self.stage = self.pod["metadata"]["ownerReferences"][0]["uid"], self.origin.stage.name
        self._dirty.set()
        self._reconcile()

    def _applied(self) -> str:
        return content_of(self.content) or ""

    async def stop(self) -> None:
        """Release everything, as at SIGTERM, and say so."""
        self._stopping = True
        self._look()
        await asyncio.gather(*self._tasks)
        await self._write()

    def _some(self, longest: float) -> float:
        return self._chance.random() * longest

    def _now(self) -> str:
        return to_rfc3339(EPOCH + asyncio.get_running_loop().time())

    def _look(self) -> None:
        looked, self._looked = self._looked, asyncio.Event()
        looked.set()

    def _seen(self, item: Object | None) -> None:
        if item is None:
            return  # deleted, or it names another pod: it goes on until SIGTERM
        if not self.name:
            self.name = item["metadata"]["name"]
            self._launch_count = item["status"]["launchCount"]
        self._content_id = content_of(item) or ""
        self.wanted = pe_spec(item)
        runtime = item.get("status", {}).get("runtime") or {}
        if not self._known:
            self._releases = RuntimeStatus.model_validate(runtime).releases
        if runtime.get("podUid") != self.pod["metadata"]["uid"]:
            self._dirty.set()
        self._known = runtime or self._known
        self._look()
        self._reconcile()

    def _reconcile(self) -> None:
        if self.content is None or self.wanted is None or self._stopping:
            return
        for shard in self.wanted.shards:
            if shard not in self.shards:
                self.shards[shard] = ShardStatus(state="Starting", epoch=self.wanted.epoch)
                task = asyncio.ensure_future(self._run_shard(shard, self.wanted.epoch))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            elif self.shards[shard].state != "Stopping":
                self._say(shard, epoch=self.wanted.epoch)
        self._settle()
        self._save(self.wanted.saving)

    def _save(self, wish: Saving | None) -> None:
        """Copy what the spec asks for, unless that is done or under way."""
        if wish is None or (self._saving and not self._saving.done()):
            return
        if self._saved is None or self._saved.uid != wish.uid or self._saved.message:
            self._saving = asyncio.ensure_future(self._copy(wish))

    async def _copy(self, wish: Saving) -> None:
        await asyncio.sleep(self._some(self._tempo.plan))
        if self.sick:
            self._saved = Saved(uid=wish.uid, message="the disk is full")
            asyncio.get_running_loop().call_later(2.0, self._reconcile)
        else:
            self._saved = self._copied(wish)
        self._dirty.set()

    def _copied(self, wish: Saving) -> Saved:
        assert self.origin is not None
        path = names.savepoint_path(self.pod["metadata"]["namespace"], wish.savepoint)
        stage = with_state(self.origin.stage)
        for shard in wish.shards:
            counts = self._checkpoints.save(path, stage, self.stage, shard)
            self._truth.copies(self, shard, wish.uid, counts)
        unclean = [n for n in wish.shards if not self._checkpoints.is_clean(self.stage, n)]
        return Saved(
            uid=wish.uid, shards=wish.shards, size_bytes=1, unclean=unclean, state=stage.state
        )

    def _settle(self) -> None:
        """Note the epoch as applied once every wanted shard has been started, and no other runs."""
        if self.wanted is None or self._epoch == self.wanted.epoch:
            return
        serving = {shard for shard, said in self.shards.items() if said.first_batch_at}
        if serving == set(self.wanted.shards) == self.shards.keys():
            self._epoch = self.wanted.epoch
            self._dirty.set()

    async def _run_shard(self, shard: int, epoch: int) -> None:
        self._dirty.set()
        while self._wants(shard):
            await self._run_query(shard, epoch)
            while self.shards[shard].state == "Failed" and self._wants(shard):
                await asyncio.sleep(1.0)
                if await self._is_ours(shard):
                    break
        self._say(shard, state="Stopping")
        await asyncio.sleep(self._some(self._tempo.stop))
        self._checkpoints.settle(self.stage, shard)
        self._truth.rests(self, shard)
        epoch = max(self.shards.pop(shard).epoch, self.wanted.epoch if self.wanted else 0)
        now = self._now()
        self._releases[str(shard)] = Release(epoch=epoch, released_at=now, last_batch_at=now)
        self._dirty.set()
        self._reconcile()

    async def _run_query(self, shard: int, epoch: int) -> None:
        """Run batch after batch until the shard has to stop, or is fenced off."""
        self._truth.writes(self, shard, epoch)
        try:
            await self._prepare(shard)
        except NotRestorable as error:
            self._truth.rests(self, shard)
            self._say(shard, state="Failed", message=str(error))
            return
        await asyncio.sleep(self._some(self._tempo.start))
        while self.sick and self._wants(shard):
            await asyncio.sleep(1.0)
        now = self._now()
        self._say(shard, state="Running", started_at=now, first_batch_at=now, message="")
        self._settle()
        self._begin_batch(shard)
        while self._wants(shard) and self.shards[shard].state == "Running":
            await self._looked.wait()

    async def _prepare(self, shard: int) -> None:
        """Make a checkpoint, of the savepoint's or empty; nobody sees it before it is whole."""
        assert self.origin is not None
        if not self._checkpoints.exists(self.stage, shard):
            counts = self._checkpoints.first_counts(self.origin, shard)
            if self.origin.savepoint:
                await asyncio.sleep(self._some(self._tempo.plan))
            self._checkpoints.create(self.stage, shard, counts)
        if (first := self._checkpoints.untouched(self.stage, shard)) is not None:
            self._truth.begins(self, shard, first)

    def _begin_batch(self, shard: int) -> None:
        batch = self._checkpoints.next_batch(self.stage, shard)
        seconds = self._some(self._tempo.batch)
        loop = asyncio.get_running_loop()
        if shard in self._batches:
            self._batches[shard].cancel()
        self._batches[shard] = loop.call_later(seconds, self._end_batch, shard, batch)

    def _end_batch(self, shard: int, batch: int) -> None:
        if shard not in self.shards or self.shards[shard].state != "Running":
            return
        if self._checkpoints.log(self.stage, shard, batch):
            self._truth.logs(self, shard, batch)
            self._checkpoints.settle(self.stage, shard)
            self._begin_batch(shard)
            return
        self._truth.rests(self, shard)
        self._say(shard, state="Failed", started_at=None, first_batch_at=None, message="fenced off")
        self._look()

    def _wants(self, shard: int) -> bool:
        wanted = self.wanted is not None and shard in self.wanted.shards
        return wanted and not self._stopping

    async def _is_ours(self, shard: int) -> bool:
        path = PROCESSING_ELEMENT.path(self.pod["metadata"]["namespace"])
        ours = {"fieldSelector": f"status.pod={self.pod['metadata']['name']}"}
        try:
            found = (await self._client.list(path, ours))["items"]
        except (ApiError, Unreachable):
            return False
        return any(shard in item["spec"]["shards"] for item in found)

    def _say(self, shard: int, **what: object) -> None:
        new = self.shards[shard].model_copy(update=what)
        if new != self.shards[shard]:
            self.shards[shard] = new
            self._dirty.set()

    async def _report(self) -> None:
        await self._store.synced.wait()
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            if not await self._write():
                self._dirty.set()
                await asyncio.sleep(0.5)

    async def _write(self) -> bool:
        metadata = self.pod["metadata"]
        if not self.name or self._disowned:
            return True
        path = PROCESSING_ELEMENT.path(metadata["namespace"], self.name) + "/status"
        status = RuntimeStatus(
            pod=metadata["name"],
            pod_uid=metadata["uid"],
            launch_count=self._launch_count,
            ready=self.content is not None and not self._stopping,
            content_id=self._applied(),
            epoch=self._epoch,
            shards={str(shard): status for shard, status in self.shards.items()},
            releases=self._releases,
            saved=self._saved,
        )
        patch = merge_patch(self._known, status)
        try:
            answer = await self._client.patch(path, patch)
        except NotFound:
            return True  # deleted: nobody reads it any more
        except (ApiError, Unreachable):
            self._known = applied(self._known, patch)
            return False
        self._known = answer["status"].get("runtime") or {}
        return True
