"""What a driver rehearses before it is needed: plans of the job, and shards that may come."""

import asyncio
import logging
from collections.abc import Callable, Collection

from streamgraft_common import names
from streamgraft_common.content import Content
from streamgraft_common.kube import ApiError, KubeClient, Unreachable
from streamgraft_common.kube.client import Object
from streamgraft_common.pe_metadata import PeMetadata
from streamgraft_common.resources import PROCESSING_ELEMENT
from streamgraft_pe_runtime.driver import Driver
from streamgraft_pe_runtime.protocol.contents import metadata_with
from streamgraft_pe_runtime.settings import Settings
from streamgraft_pe_runtime.spark_work import SparkStage

log = logging.getLogger(__name__)

_PREPARE_SECONDS = 10.0
"""Seldom: a shard that has just left would be prepared for while its next owner needs the CPU."""


class Rehearsal:
    """Warms a driver up. `named` tells whether a PE has named our pod: then it ends."""

    def __init__(
        self, driver: Driver, client: KubeClient, settings: Settings, named: Callable[[], bool]
    ) -> None:
        self._driver = driver
        self._client = client
        self._settings = settings
        self._named = named
        self._plans: dict[str, PeMetadata] = {}

    async def plans(self) -> None:
        """Warm up for every plan of the job, while no PE names our pod."""
        for plan, pe in (await self._plans_of_job()).items():
            if self._named():
                return
            content = _content_of(pe)
            document = await metadata_with(
                self._client, self._settings.namespace, pe["metadata"]["name"], content
            )
            if document is not None:
                metadata = PeMetadata.model_validate_json(document)
                if not self._driver.code.fits(metadata):
                    continue
                await asyncio.to_thread(self._driver.rehearse, plan, metadata)
                self._plans[plan] = metadata

    async def shards(self) -> None:
        """Compile the shards of the rehearsed plans, while no PE names our pod."""
        for plan, metadata in self._plans.items():
            for shard in range(metadata.shard_count):
                if self._named():
                    return
                await self._prepared(shard, plan)

    async def keep_prepared(self, stage: SparkStage, held: Callable[[], Collection[int]]) -> None:
        """Keep a plan ready for each shard that could come to us, until cancelled."""
        while True:
            for shard in range(stage.shard_count):
                if shard not in held():
                    await self._prepared(shard)
            await asyncio.sleep(_PREPARE_SECONDS)

    async def _plans_of_job(self) -> dict[str, Object]:
        """Return a PE for each plan; none if one has named our pod meanwhile."""
        if self._named():
            return {}
        path = PROCESSING_ELEMENT.path(self._settings.namespace)
        selector = f"{names.LABEL_JOB}={self._settings.job}"
        try:
            found = await self._client.get(path, labelSelector=selector)
        except (ApiError, Unreachable) as error:
            log.warning("the job's PEs were not read: %s", error)
            return {}
        return {Content.parse(_content_of(pe)).queries: pe for pe in found["items"]}

    async def _prepared(self, shard: int, rehearsed: str | None = None) -> None:
        try:
            await asyncio.to_thread(self._driver.prepare, shard, rehearsed)
        except Exception as error:  # user code: who starts the shard will report it
            log.debug("shard %d can't be prepared: %r", shard, error)


def _content_of(item: Object) -> str:
    content: str = item["metadata"].get("annotations", {}).get(names.ANNOTATION_CONTENT, "")
    return content
