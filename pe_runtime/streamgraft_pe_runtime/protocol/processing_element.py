"""The protocol of a PE with the operator, first word to SIGTERM (docs/develop/contracts.md).

Level-triggered: what runs is compared with what the newest spec wants. None of it knows of Spark,
Kafka or threads: what is to be done is done by `Work`, which the simulation plays.
"""

import asyncio
import logging
from dataclasses import dataclass
from typing import Any

from streamgraft_common.content import Change, Content, classify
from streamgraft_common.kube import ApiError, KubeClient, Store, Unreachable
from streamgraft_common.resources import (
    PROCESSING_ELEMENT,
    MatchedImport,
    RuntimeStatus,
    ShardStatus,
)
from streamgraft_pe_runtime.protocol.contents import Contents
from streamgraft_pe_runtime.protocol.cut_requests import CutRequests
from streamgraft_pe_runtime.protocol.element import Element, OwnElement
from streamgraft_pe_runtime.protocol.noticeable import Noticeable
from streamgraft_pe_runtime.protocol.own_pod import gone, own_pod
from streamgraft_pe_runtime.protocol.reporting import Reporter
from streamgraft_pe_runtime.protocol.saving import Saver
from streamgraft_pe_runtime.protocol.shards import Shards
from streamgraft_pe_runtime.protocol.stream_changes import StreamChanges
from streamgraft_pe_runtime.protocol.work import Stage, Telemetry, Work

log = logging.getLogger(__name__)

LOAD_SECONDS = 5.0
"""How often loads are looked at, and whether we are behind."""
FIRST_RETRY = 2.0
LONGEST_RETRY = 60.0
"""Seconds after which a content that could not be applied is tried again: twice as long each time.
It may need nothing but the bundle, of which another version was there."""


@dataclass(frozen=True)
class Pod:
    """Our pod."""

    namespace: str
    name: str
    uid: str


class ProcessingElement:
    """Runs the shards that the spec of our ProcessingElement names, and reports on them."""

    def __init__(self, client: KubeClient, pod: Pod, telemetry: Telemetry) -> None:
        self._client = client
        self._pod = pod
        self._telemetry = telemetry
        path = PROCESSING_ELEMENT.path(pod.namespace)
        self.store = Store(client, path, fieldSelector=f"status.pod={pod.name}")
        """The PE that names our pod, while one does."""
        self.own = OwnElement(self.store, self._let_go)
        self._reporter = Reporter(client, pod.uid, self.status)
        self._stopping = False
        self._disowned = False
        self._starts = 0
        """How often we have begun as a PE's pod: the same one may come again, from a warm pool."""
        self._start_anew()
        self.own.listen(self._follow)

    def _start_anew(self) -> None:
        self._saver = Saver(self._on_copy)
        self._starts += 1
        launch = f"{self._pod.uid}.{self._starts}"
        self._stream_changes, self._cut_requests = StreamChanges(launch), CutRequests(launch)
        self._shards: Shards | None = None
        """None until a content of our PE is applied."""
        self._applied = ""
        self._noticeable = Noticeable()
        self._message = ""
        self._connected: list[MatchedImport] = []

    def _let_go(self) -> bool:
        """Forget all of our PE, unless we hold shards of it, or are about to end."""
        if self.shards or self._saver.copying or self._stopping or self._disowned:
            return False
        self._start_anew()
        self._telemetry.begin_anew()
        self._reporter.leave()
        return True

    @property
    def named(self) -> bool:
        """True once a PE has named our pod."""
        return self.own.now is not None

    @property
    def working(self) -> bool:
        """True once a content of our PE is applied, so that we can take up shards at once."""
        return self._shards is not None

    @property
    def shards(self) -> dict[int, ShardStatus]:
        """The status of each shard that is ours, or was and is not released yet, by number.

        One whose checkpoint is being replaced is ours: no other PE may take it up meanwhile.
        """
        if self._shards is None:
            return {}
        replaced = ShardStatus(state="Stopping", epoch=self._shards.epoch)
        return dict.fromkeys(self._saver.putting_back, replaced) | self._shards.statuses()

    def status(self) -> RuntimeStatus:
        """Return our status."""
        element, shards = self.own.now, self._shards
        known = element.status.runtime if element else None
        releases = shards.releases if shards else known.releases if known else {}
        return RuntimeStatus(
            pod=self._pod.name,
            pod_uid=self._pod.uid,
            launch_count=element.launch_count if element else 0,
            ready=shards is not None and not self._stopping,
            epoch=shards.epoch if shards else 0,
            content_id=self._applied,
            shards={str(number): said for number, said in self.shards.items()},
            releases=dict(releases),
            reusable=True,
            behind=self._noticeable.behind,
            apart=shards.stage.apart if shards else "",
            saved=self._saver.saved,
            stream_changes=self._stream_changes.all(known),
            cut_requests=self._cut_requests.all(known),
            message=self._message,
        )

    def change_stream(self, operator: str, field: str, value: Any) -> None:
        """Ask for another value of a field of an Export or Import of our job."""
        known = self.own.now.status.runtime if self.own.now else None
        if self._stream_changes.add(known, operator, field, value):
            self._reporter.changed()

    async def request_cut(self, region: str) -> None:
        """Ask for a cut of a consistent region of our job; return once the API server has it."""
        self._cut_requests.add(region)
        await self._reporter.told()

    def report(self, message: str) -> None:
        """Say in our status what is wrong with the PE as a whole."""
        self._message = message
        self._reporter.changed()

    async def listen(self) -> None:
        """Follow our PE and report our status, until our Pod is gone: then somebody else may run
        our shards, and another pod speaks for our PE. Whoever deleted the Pod counts on that."""
        pods = own_pod(self._client, self._pod.namespace, self._pod.name)
        works = (self.store.run(), self._reporter.run(), pods.run())
        tasks = [asyncio.create_task(work) for work in works]
        end = asyncio.create_task(gone(pods, self._pod.uid))
        try:
            done, _ = await asyncio.wait({*tasks, end}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()  # what should never end has failed
        finally:
            for task in (*tasks, end):
                task.cancel()
        self._disowned = True
        self._reporter.disown()
        if self._shards:
            self._shards.mute()

    async def work(self, work: Work) -> None:
        """Apply every content of our PE and run its shards, until cancelled; then of the next PE.

        Raises what the application raises when a PE's first content is applied. A later one that
        can't be is reported and tried again, and the old one goes on: its bundle may come late.
        """
        contents = Contents(self._client, self.own)
        again_in = None
        while True:
            element, metadata = await contents.next(again_in)
            content, shards = element.content, self._shards
            if shards is None:
                stage = await work.apply(content, metadata)
                if self._is_own(element):
                    self._begin(stage, content)
                again_in = None
                continue
            change = classify(Content.parse(self._applied), Content.parse(content))
            if change is Change.IN_PLACE and not await self._replan(work, content, metadata):
                again_in = min(2 * again_in, LONGEST_RETRY) if again_in else FIRST_RETRY
                continue
            again_in = None
            if change is Change.RESTART or self._shards is not shards:
                continue  # a new pod will have it, or our PE is gone
            self._applied = content
            self.report("")

    def _is_own(self, element: Element) -> bool:
        return self.own.now is not None and self.own.now.uid == element.uid

    async def report_loads(self) -> None:
        """Write the loads of shards, and whether we are behind, when they have changed enough to
        matter, until cancelled."""
        while True:
            await asyncio.sleep(LOAD_SECONDS)
            if self._shards:
                stage = self._shards.stage
                if self._noticeable.look(stage.loads(), behind=stage.behind()):
                    self._reporter.changed()

    async def stop(self, deadline_seconds: float) -> None:
        """Release all shards, at batch boundaries if the deadline allows it, and say so."""
        self._stopping = True
        if self._shards:
            await self._shards.stop(deadline_seconds)
        await self._reporter.write()

    def _begin(self, stage: Stage, content: str) -> None:
        """Take up work: from now on shards can be started."""
        releases = self.status().releases
        changed = self._reporter.changed
        self._shards = Shards(stage, releases, changed, self._is_ours, self._telemetry)
        if self._disowned:
            self._shards.mute()
        self._applied = content
        self.report("")
        self._reconcile()

    async def _replan(self, work: Work, content: str, metadata: str) -> bool:
        try:
            stage = await work.apply(content, metadata)
        except Exception as error:  # user code plans here: anything may be raised
            log.exception("the new plan can't be applied")
            why = f"{type(error).__name__}: {error}"
            self.report(f"the new plan can't be applied, the old one goes on: {why}")
            return False
        if self._shards:
            self._shards.replan(stage)
        return True

    def _follow(self, element: Element) -> None:
        self._reporter.follow(element)
        self._reconcile()

    def _on_copy(self) -> None:
        self._reporter.changed()
        self._reconcile()

    def _reconcile(self) -> None:
        if self._shards and self.own.now and not self._stopping:
            imports = self.own.now.spec.imports
            if imports != self._connected:
                self._connected = imports
                if self._shards.stage.connect(imports):
                    self._shards.replan(self._shards.stage)
            spec = self.own.now.spec
            self._shards.follow(spec, self._saver.putting_back)
            in_use = self._shards.held.union(spec.shards)
            self._saver.follow(spec.saving, self._shards.stage, in_use)

    async def _is_ours(self, shard: int) -> bool:
        """Ask the API server, not our cache: one that is cut off from it may not go on."""
        ours = {"fieldSelector": f"status.pod={self._pod.name}"}
        try:
            path = PROCESSING_ELEMENT.path(self._pod.namespace)
            found = (await self._client.list(path, ours))["items"]
        except (ApiError, Unreachable) as error:
            log.warning("can't confirm shard %d: %s", shard, error)
            return False
        return any(shard in item["spec"].get("shards", []) for item in found or ())
