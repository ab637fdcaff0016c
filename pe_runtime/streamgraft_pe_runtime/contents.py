"""What the PE is made of, as it changes: read from its ConfigMap, applied in the running driver.

Read through the API server, for a warm pod has no volume with it, and volumes lag by minutes.

The first content brings the driver to work; a later one whose plan differs restarts the queries,
each at its own batch boundary. A plan that can't be applied is reported, and the old one goes on.
"""

import asyncio
import logging

from streamgraft_common import names
from streamgraft_common.content import Change, Content, classify
from streamgraft_common.kube import ApiError, KubeClient, Unreachable
from streamgraft_common.kube.client import Object
from streamgraft_common.pe_metadata import PeMetadata
from streamgraft_common.resources import PROCESSING_ELEMENT
from streamgraft_pe_runtime.control import Control
from streamgraft_pe_runtime.driver import Driver
from streamgraft_pe_runtime.metrics import PeMetrics
from streamgraft_pe_runtime.progress import Progress
from streamgraft_pe_runtime.savepoints import Storage
from streamgraft_pe_runtime.settings import Settings

log = logging.getLogger(__name__)

_RETRY_SECONDS = 0.2
_PREPARE_SECONDS = 10.0
"""Seldom: a shard that has just left would be prepared for while its next owner needs the CPU."""


class Contents:
    """Follows the content of our PE."""

    def __init__(
        self,
        control: Control,
        client: KubeClient,
        settings: Settings,
        metrics: PeMetrics,
        driver: Driver,
    ) -> None:
        self._driver = driver
        self._control = control
        self._client = client
        self._settings = settings
        self._metrics = metrics
        self._seen = ""
        self._shard_count = 0

    async def rehearse(self) -> None:
        """While no PE names our pod: warm up for every plan of the job, and compile its shards'."""
        path = PROCESSING_ELEMENT.path(self._settings.namespace)
        selector = f"{names.LABEL_JOB}={self._settings.job}"
        pes = {} if self._control.named else await self._read(path, labelSelector=selector)
        plans = {Content.parse(_content_of(pe)).plan: pe for pe in pes.get("items", [])}
        shards: list[tuple[int, str]] = []
        for plan, pe in plans.items():
            if self._control.named:
                return
            if metadata := await self._metadata(pe["metadata"]["name"], _content_of(pe)):
                await asyncio.to_thread(self._driver.rehearse, plan, metadata)
                shards += ((shard, plan) for shard in range(metadata.shard_count))
        self._control.wait_warm()
        for shard, plan in shards:
            if self._control.named:
                return
            await self._prepared(shard, plan)

    async def first(self) -> Progress:
        """Take up the PE that names our pod, as soon as one does. Raises what its plan raises."""
        metadata = await self._next()
        await asyncio.to_thread(self._driver.apply, self._plan, metadata)
        progress = await asyncio.to_thread(
            Progress, metadata, self._metrics, self._driver.busy_seconds
        )
        self._control.warm(self._driver.start, progress, self._storage(metadata))
        self._control.applied(self._seen)
        self._shard_count = metadata.shard_count
        return progress

    async def follow(self, progress: Progress) -> None:
        """Apply every later content, until cancelled."""
        applied = self._seen
        while True:
            metadata = await self._next()
            change = classify(Content.parse(applied), Content.parse(self._seen))
            if change is Change.RESTART:
                continue  # a new pod will have it
            if change is Change.IN_PLACE and not await self._replan(metadata, progress):
                continue
            applied = self._seen
            self._control.applied(applied)

    async def prepare(self) -> None:
        """Keep a plan ready for each shard that could come to us, until cancelled."""
        while True:
            for shard in range(self._shard_count):
                if not self._control.holds(shard):
                    await self._prepared(shard)
            await asyncio.sleep(_PREPARE_SECONDS)

    async def _prepared(self, shard: int, rehearsed: str | None = None) -> None:
        try:
            await asyncio.to_thread(self._driver.prepare, shard, rehearsed)
        except Exception as error:  # user code: who starts the shard will report it
            log.debug("shard %d can't be prepared: %r", shard, error)

    @property
    def _plan(self) -> str:
        return Content.parse(self._seen).plan

    async def _replan(self, metadata: PeMetadata, progress: Progress) -> bool:
        try:
            await asyncio.to_thread(self._driver.apply, self._plan, metadata)
            await asyncio.to_thread(progress.replan, metadata)
        except Exception as error:  # user code plans here: anything may be raised
            log.exception("the new plan can't be applied")
            why = f"{type(error).__name__}: {error}"
            self._control.report(f"the new plan can't be applied, the old one goes on: {why}")
            return False
        self._control.replan(self._storage(metadata))
        return True

    def _storage(self, metadata: PeMetadata) -> Storage:
        root, driver = self._settings.checkpoint_root, self._driver
        return Storage(root, metadata, driver.adl, driver.stores)

    async def _next(self) -> PeMetadata:
        """Wait for a content that was not seen before, and return what it stands for."""
        while True:
            pe, content = await self._control.content_after(self._seen)
            if metadata := await self._metadata(pe, content):
                self._seen = content
                return metadata
            await asyncio.sleep(_RETRY_SECONDS)

    async def _metadata(self, pe: str, content: str) -> PeMetadata | None:
        """Return the graph metadata of a PE if its ConfigMap has this content."""
        item = await self._read(f"/api/v1/namespaces/{self._settings.namespace}/configmaps/{pe}")
        if not item or _content_of(item) != content:
            return None
        return PeMetadata.model_validate_json(item["data"][names.PE_METADATA_KEY])

    async def _read(self, path: str, **query: str) -> Object:
        try:
            return await self._client.get(path, **query)
        except (ApiError, Unreachable) as error:
            log.warning("%s not read: %s", path, error)
            return {}


def _content_of(item: Object) -> str:
    content: str = item["metadata"].get("annotations", {}).get(names.ANNOTATION_CONTENT, "")
    return content
