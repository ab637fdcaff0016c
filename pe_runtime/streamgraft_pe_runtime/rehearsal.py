"""What a driver rehearses before it is needed: plans of the job, and shards that may come."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress

from py4j.protocol import Py4JError

from streamgraft_common import names
from streamgraft_common.content import Content
from streamgraft_common.kube import ApiError, KubeClient, Unreachable
from streamgraft_common.kube.client import Object
from streamgraft_common.pe_metadata import PeMetadata
from streamgraft_common.resources import PROCESSING_ELEMENT
from streamgraft_pe_runtime.driver import Driver
from streamgraft_pe_runtime.pressure import cpu_pressure
from streamgraft_pe_runtime.protocol.contents import metadata_with
from streamgraft_pe_runtime.settings import Settings
from streamgraft_pe_runtime.spark_work import SparkStage

log = logging.getLogger(__name__)

_PREPARE_SECONDS = 10.0
"""Seldom: a shard that has just left would be prepared for while its next owner needs the CPU."""
_IDLE_SECONDS = 5.0
"""How often a pod that is ready looks whether there is CPU for another plan."""
_PATIENCE_SECONDS = 30.0
"""How long it waits for that: where CPU is always short, whatever fails would be met cold."""
_FREE_PRESSURE = 0.1
"""CPU is free if something waited for it in a smaller share of the time."""


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
        self._later: dict[str, Object] = {}

    async def plans(self) -> None:
        """Warm up for the plans that a new channel may be given, while no PE names our pod."""
        first, self._later = first_and_later(await self._plans_of_job())
        for plan, pe in first.items():
            if self._named():
                return
            await self._rehearsed(plan, pe)

    async def others(self) -> None:
        """Warm up for the job's other plans, one by one, while no PE names our pod.

        Each waits until CPU is free, but not for long.
        """
        for plan, pe in self._later.items():
            with suppress(TimeoutError):
                async with asyncio.timeout(_PATIENCE_SECONDS):
                    await self._idle()
            if self._named():
                return
            await self._rehearsed(plan, pe)
            await self.shards()

    async def _idle(self) -> None:
        """Return when CPU is free, or a PE names our pod."""
        await asyncio.sleep(_IDLE_SECONDS)
        while not self._named() and cpu_pressure() >= _FREE_PRESSURE:
            await asyncio.sleep(_IDLE_SECONDS)

    async def shards(self) -> None:
        """Compile the shards of the rehearsed plans, while no PE names our pod."""
        for plan, metadata in self._plans.items():
            for shard in range(metadata.shard_count):
                if self._named():
                    return
                await self._prepared(shard, plan)

    async def keep_prepared(
        self, newest: Callable[[], Awaitable[SparkStage]], held: Callable[[], Collection[int]]
    ) -> None:
        """Keep a plan ready for each shard that could come to us, until cancelled."""
        while True:
            stage = await newest()
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

    async def _rehearsed(self, plan: str, pe: Object) -> None:
        content = _content_of(pe)
        document = await metadata_with(
            self._client, self._settings.namespace, pe["metadata"]["name"], content
        )
        if document is None or self._named():
            return
        try:
            metadata = PeMetadata.model_validate_json(document)
            if not self._driver.code.fits(metadata):
                return
            await asyncio.to_thread(self._driver.rehearse, plan, metadata)
        except Py4JError:
            raise  # without its JVM a driver is no use
        except Exception as error:  # user code: who comes to work as this PE will report it
            log.warning("%s can't be rehearsed: %r", pe["metadata"]["name"], error)
            return
        self._plans[plan] = metadata

    async def _prepared(self, shard: int, rehearsed: str | None = None) -> None:
        try:
            await asyncio.to_thread(self._driver.prepare, shard, rehearsed)
        except Exception as error:  # user code: who starts the shard will report it
            log.debug("shard %d can't be prepared: %r", shard, error)


def first_and_later(plans: Mapping[str, Object]) -> tuple[dict[str, Object], dict[str, Object]]:
    """Return the plans (by hash, with a PE of each) to rehearse first, and those that can wait.

    Pods are mostly taken for new channels, and each plan costs some seconds of CPU. A job without
    regions has its pool for PEs that fail.
    """
    channels = {plan: pe for plan, pe in plans.items() if pe["spec"].get("region")}
    if not channels:
        return dict(plans), {}
    return channels, {plan: pe for plan, pe in plans.items() if plan not in channels}


def _content_of(item: Object) -> str:
    content: str = item["metadata"].get("annotations", {}).get(names.ANNOTATION_CONTENT, "")
    return content
