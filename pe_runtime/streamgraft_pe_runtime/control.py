"""The control loop of a PE: its own ProcessingElement says which shards to run.

Level-triggered: `reconcile` compares what the newest spec wants with what runs. Shards start and
stop side by side; none waits for another. With the API server away everything goes on as it is.
"""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from streamgraft_common import names
from streamgraft_common.kube import ApiError, KubeClient, NotFound, Store, Unreachable
from streamgraft_common.kube.store import Key
from streamgraft_common.resources import (
    PROCESSING_ELEMENT,
    ProcessingElementSpec,
    Release,
    RuntimeStatus,
    Saved,
    Saving,
)
from streamgraft_pe_runtime.metrics import PeMetrics
from streamgraft_pe_runtime.progress import LOAD_SECONDS, Progress
from streamgraft_pe_runtime.query import ShardQuery
from streamgraft_pe_runtime.runtime_status import applied, merge_patch
from streamgraft_pe_runtime.savepoints import Storage
from streamgraft_pe_runtime.settings import Settings
from streamgraft_pe_runtime.shard import Shard

log = logging.getLogger(__name__)

HANDOVER_SECONDS = 120.0
"""How long a shard that moves may take to its batch boundary before its batch is cut off."""
_RETRY_SECONDS = (0.2, 5.0)
_SAVE_AGAIN_SECONDS = 2.0

StartShard = Callable[[int, Path], ShardQuery]
"""Starts the query of a shard on its checkpoint; blocks."""


class Control:
    """Runs the shards that the spec of our ProcessingElement names, and reports on them.

    Which one is ours is not known at the start: `store` holds the PE that names our pod, once there
    is one. It stays ours when it names another pod; then ours is about to be ended.
    """

    def __init__(
        self, client: KubeClient, settings: Settings, metrics: PeMetrics, store: Store
    ) -> None:
        self._client = client
        self._settings = settings
        self._metrics = metrics
        self._store = store
        self._start: StartShard | None = None
        self._progress: Progress | None = None
        self._storage: Storage | None = None
        self._saving: asyncio.Task[None] | None = None
        self._saved: Saved | None = None
        self._warm = False
        self._content = ""
        self._applied = ""
        self._launch_count = 0
        self._shards: dict[int, Shard] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._releases: dict[str, Release] = {}
        self._epoch = 0
        self._key: Key | None = None
        self._wanted: ProcessingElementSpec | None = None
        self._stopping = False
        self._disowned = False
        self._message = ""
        self._known: dict[str, Any] = {}
        self._dirty = asyncio.Event()
        self._heard = asyncio.Event()
        store.listen(lambda key, old, new: self._seen(key, new))

    @property
    def named(self) -> bool:
        """True once a PE has named our pod."""
        return self._key is not None

    @property
    def ready(self) -> bool:
        """True once warm: for our PE, or for whichever will name us."""
        return self._start is not None if self.named else self._warm

    def holds(self, shard: int) -> bool:
        """Return whether a shard is ours, or was and is not released yet."""
        return shard in self._shards

    def wait_warm(self) -> None:
        """Say that we could take up any PE of the job at once."""
        self._warm = True

    async def content_after(self, seen: str) -> tuple[str, str]:
        """Wait until our PE has another content than `seen`; return its name and the content."""
        while self._key is None or self._content == seen:
            self._heard.clear()
            await self._heard.wait()
        return self._key[1], self._content

    def warm(self, start: StartShard, progress: Progress, storage: Storage) -> None:
        """Take up work: from now on shards can be started, on the checkpoints in `storage`."""
        self._start, self._progress, self._storage = start, progress, storage
        self._reconcile()
        self._dirty.set()

    def replan(self, storage: Storage) -> None:
        """Start all queries anew from the new plan, each at its own batch boundary."""
        self._storage = storage
        for shard in self._shards.values():
            shard.replan(HANDOVER_SECONDS)

    def applied(self, content: str) -> None:
        """Say that the driver works by this content of our PE."""
        self._applied = content
        self.report("")

    def status(self) -> RuntimeStatus:
        """Return what we say of ourselves."""
        return RuntimeStatus(
            pod=self._settings.pod,
            pod_uid=self._settings.pod_uid,
            launch_count=self._launch_count,
            ready=self._start is not None and not self._stopping,
            epoch=self._epoch,
            content_id=self._applied,
            shards={
                str(number): shard.status.model_copy(update=self._load(number))
                for number, shard in sorted(self._shards.items())
            },
            releases=self._releases,
            saved=self._saved,
            message=self._message,
        )

    async def tell_loads(self) -> None:
        """Write the loads of shards when they have changed enough to matter, until cancelled."""
        told: object = None
        while True:
            await asyncio.sleep(LOAD_SECONDS)
            loads = self._progress.loads() if self._progress else {}
            rough = {shard: (round(load.busy, 1), load.lag > 0) for shard, load in loads.items()}
            if rough != told:
                told = rough
                self._dirty.set()

    def _load(self, shard: int) -> dict[str, float | int]:
        load = self._progress.loads().get(shard) if self._progress else None
        return {"busy": load.busy, "lag": load.lag} if load else {}

    def report(self, message: str) -> None:
        """Say in our status what is wrong with the PE as a whole."""
        self._message = message
        self._dirty.set()

    def disown(self) -> None:
        """Say nothing more: our pod is gone, and what is said of our PE is another's to say."""
        self._disowned = True

    async def run(self) -> None:
        """Write our status whenever it has changed, until cancelled."""
        delay = _RETRY_SECONDS[0]
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            if await self._write():
                delay = _RETRY_SECONDS[0]
            else:
                self._dirty.set()
                await asyncio.sleep(delay)
                delay = min(delay * 2, _RETRY_SECONDS[1])

    async def stop(self, deadline_seconds: float) -> None:
        """Release all shards, at batch boundaries if the deadline allows it, and say so."""
        self._stopping = True
        for shard in self._shards.values():
            shard.release(deadline_seconds)
        await asyncio.gather(*self._tasks.values())
        await self._write()

    def _seen(self, key: Key, item: dict[str, Any] | None) -> None:
        if item is None:
            return  # deleted, or it names another pod: we go on until SIGTERM
        if self._key is None:
            self._key, self._launch_count = key, item["status"]["launchCount"]
            log.info("launch %d of %s", self._launch_count, key[1])
        self._content = item["metadata"].get("annotations", {}).get(names.ANNOTATION_CONTENT, "")
        self._wanted = ProcessingElementSpec.model_validate(item["spec"])
        runtime = item["status"].get("runtime") or {}
        if not self._known:
            self._releases = {
                shard: Release.model_validate(entry)
                for shard, entry in runtime.get("releases", {}).items()
            }
        if runtime.get("podUid") != self._settings.pod_uid:
            self._dirty.set()  # not told yet, or over it by a pod that is gone but still runs
        self._known = runtime or self._known
        self._heard.set()
        self._reconcile()

    def _reconcile(self) -> None:
        if self._start is None or self._wanted is None or self._stopping:
            return
        wanted, epoch = set(self._wanted.shards), self._wanted.epoch
        for number in wanted - self._shards.keys():
            self._run_shard(number, epoch)
        for number, shard in self._shards.items():
            if number not in wanted:
                shard.release(HANDOVER_SECONDS)
            elif not shard.releasing:
                shard.renew(epoch)
        self._settle()
        self._save()

    def _save(self) -> None:
        """Copy what the spec asks for into a savepoint, unless that is done or under way."""
        assert self._wanted is not None
        wish = self._wanted.saving
        if wish is None or (self._saving and not self._saving.done()):
            return
        if self._saved and self._saved.uid == wish.uid and not self._saved.message:
            return
        self._saving = asyncio.create_task(self._copy(wish), name=f"saving-{wish.savepoint}")

    async def _copy(self, wish: Saving) -> None:
        assert self._storage is not None
        try:
            self._saved = await asyncio.to_thread(self._storage.save, wish)
        except OSError as error:
            log.warning("savepoint %s: %s", wish.savepoint, error)
            self._saved = Saved(uid=wish.uid, message=str(error))
            asyncio.get_running_loop().call_later(_SAVE_AGAIN_SECONDS, self._reconcile)
        self._dirty.set()

    def _settle(self) -> None:
        """Note the epoch as applied once every wanted shard has been started, and no other runs."""
        if self._wanted is None or self._epoch == self._wanted.epoch:
            return
        started = {n for n, shard in self._shards.items() if shard.status.first_batch_at}
        if started == set(self._wanted.shards) == self._shards.keys():
            self._epoch = self._wanted.epoch
            self._dirty.set()

    def _run_shard(self, number: int, epoch: int) -> None:
        assert self._storage is not None
        checkpoint = self._storage.checkpoint(number)

        def start() -> ShardQuery:
            assert self._start is not None
            assert self._progress is not None
            assert self._storage is not None
            self._storage.prepare(number)
            query = self._start(number, checkpoint)
            self._progress.watch(number, query, checkpoint)
            return query

        shard = Shard(number, epoch, checkpoint, start, self._changed, self._is_ours)
        self._shards[number] = shard
        self._metrics.shards.set(len(self._shards))
        self._tasks[number] = asyncio.create_task(self._live(shard), name=f"shard-{number}")
        self._dirty.set()

    async def _is_ours(self, shard: int) -> bool:
        """Ask the API server, not our cache: one that is cut off from it may not go on."""
        assert self._key is not None
        path = PROCESSING_ELEMENT.path(self._key[0])
        ours = {"fieldSelector": f"status.pod={self._settings.pod}"}
        try:
            found = (await self._client.list(path, ours))["items"]
        except (ApiError, Unreachable) as error:
            log.warning("can't confirm shard %d: %s", shard, error)
            return False
        return any(shard in item["spec"].get("shards", []) for item in found or ())

    async def _live(self, shard: Shard) -> None:
        """Run a shard to its release: stop, publish positions if all go, then let go of it."""
        release = await shard.run()
        if self._wanted is not None:  # it counts for the epoch that took the shard away
            epoch = max(release.epoch, self._wanted.epoch)
            release = release.model_copy(update={"epoch": epoch})
        if self._progress is not None:
            # If all shards go, the region may fall asleep: nobody takes this one up for long.
            last = self._stopping or self._wanted is None or not self._wanted.shards
            publish = last and not self._disowned
            batch_at = await asyncio.to_thread(
                self._progress.release, shard.number, shard.checkpoint, publish=publish
            )
            # A shard without data has no new batch, but it served until it was asked to stop.
            served_until = max(batch_at or "", release.last_batch_at or "") or None
            release = release.model_copy(update={"last_batch_at": served_until})
        if shard.stop_seconds is not None:
            self._metrics.handover_seconds.labels("stop").observe(shard.stop_seconds)
        if not release.clean:
            self._metrics.unclean_stops.inc()
        log.info("shard %d released", shard.number)
        self._releases = {**self._releases, str(shard.number): release}
        del self._shards[shard.number], self._tasks[shard.number]
        self._metrics.shards.set(len(self._shards))
        self._dirty.set()
        self._reconcile()  # it may have been wanted back while it stopped

    def _changed(self, shard: Shard) -> None:
        if shard.status.state == "Failed":
            self._metrics.restarts.labels(str(shard.number)).inc()
        if shard.start_seconds is not None:
            self._metrics.handover_seconds.labels("start").observe(shard.start_seconds)
            shard.start_seconds = None
        self._dirty.set()
        self._settle()

    async def _write(self) -> bool:
        if self._key is None or self._disowned:
            return True  # nobody to tell
        patch = merge_patch(self._known, self.status())
        try:
            path = PROCESSING_ELEMENT.path(*self._key) + "/status"
            answer = await self._client.patch(path, patch)
            self._known = answer["status"].get("runtime") or {}
        except NotFound:
            return True  # deleted: nobody reads it any more
        except (ApiError, Unreachable) as error:
            self._known = applied(self._known, patch)
            log.warning("status not written: %s", error)
            return False
        return True
