"""What happens when a Job is deleted: everything of it goes, in an order that leaves nothing.

Resources are deleted in bulk by label; then, when no pod can write any more, topics and consumer
groups; then checkpoints; then the finalizer.
"""

import asyncio
import shutil
import time
from collections.abc import Sequence

from streamgraft_common import names
from streamgraft_common.bundle import BundleError
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, key_of
from streamgraft_common.timestamps import from_rfc3339
from streamgraft_operator import events
from streamgraft_operator.context import Context
from streamgraft_operator.graph import GraphError
from streamgraft_operator.kafka.client import KafkaUnavailable
from streamgraft_operator.kit.caches import Index
from streamgraft_operator.kit.control_loop import Again, Outcome
from streamgraft_operator.kit.coordinator import Coordinator
from streamgraft_operator.kit.parsed import job_status
from streamgraft_operator.kit.together import together

Kinds = tuple[tuple[Index, Coordinator], ...]

POD_PATIENCE_SECONDS = 300.0
"""How long to wait for pods to end (their node may be gone) before topics are deleted."""
KAFKA_PATIENCE_SECONDS = 120.0
"""How long to try to reach Kafka before its topics are left over."""
LOOK_AGAIN_SECONDS = 5.0


PARALLEL_CALLS = 16
WHOLE = 100
"""Objects of a kind that are deleted by one call."""


def bulk_selectors(job: str, items: Sequence[Object]) -> list[str]:
    """Return label selectors that cover what is not being deleted yet of a job's objects.

    More than a few are selected channel by channel: the API server deletes what one call selects
    one after the other, so several calls are as much faster.
    """
    rest = [item["metadata"] for item in items if "deletionTimestamp" not in item["metadata"]]
    everything = f"{names.LABEL_JOB}={job}"
    if len(rest) <= WHOLE:
        return [everything] if rest else []
    channels = {metadata["labels"].get(names.LABEL_CHANNEL) for metadata in rest}
    return [
        f"{everything},{names.LABEL_CHANNEL}={channel}"
        if channel is not None
        else f"{everything},!{names.LABEL_CHANNEL}"
        for channel in sorted(channels, key=lambda channel: channel or "")
    ]


class Cleaner:
    """Cleans up after deleted jobs; safe to interrupt and repeat."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def clean(self, job: Object) -> Outcome:
        """Take the next steps; the finalizer goes with the last."""
        key = key_of(job)
        if names.FINALIZER not in job["metadata"].get("finalizers", []):
            return None
        since = time.time() - from_rfc3339(job["metadata"]["deletionTimestamp"])
        await self._delete(key, self._actors())
        if any(kind.get(key) for kind, _ in self._actors()) and since < POD_PATIENCE_SECONDS:
            return LOOK_AGAIN_SECONDS
        await self._delete(key, self._furniture())
        try:
            await self._delete_from_kafka(job)
        except KafkaUnavailable as error:
            if since < KAFKA_PATIENCE_SECONDS:
                return Again.WITH_BACKOFF
            self._leave_topics(job, str(error))
        await self._remove_checkpoints(job)
        await self._context.write.jobs.release(key)
        return None

    def _actors(self) -> Kinds:
        """Return what runs, or makes something run."""
        caches, write = self._context.caches, self._context.write
        return (
            (caches.regions_by_job, write.regions),
            (caches.processing_elements_by_job, write.processing_elements),
            (caches.pods_by_job, write.pods),
        )

    def _furniture(self) -> Kinds:
        """Return what pods use until they end."""
        caches, write = self._context.caches, self._context.write
        return (
            (caches.services_by_job, write.services),
            (caches.config_maps_by_job, write.config_maps),
        )

    async def _delete(self, key: Key, kinds: Kinds) -> None:
        """Delete by label, several calls at once."""
        limit = asyncio.Semaphore(PARALLEL_CALLS)

        async def delete(coordinator: Coordinator, selector: str) -> None:
            async with limit:
                await coordinator.delete_all(key[0], selector)

        await together(
            delete(coordinator, selector)
            for index, coordinator in kinds
            for selector in bulk_selectors(key[1], index.get(key))
        )

    async def _delete_from_kafka(self, job: Object) -> None:
        if not job_status(job).generation_id:
            return  # never accepted, so nothing was made
        prefix = names.topic_prefix(*key_of(job))
        kafka = self._context.kafka
        brokers = await self._context.brokers_of(job)
        leftovers = await kafka.leftovers(brokers, prefix, await self._outside_topics(job))
        await kafka.delete(brokers, leftovers)

    async def _outside_topics(self, job: Object) -> frozenset[str]:
        try:
            expansion = await self._context.expander.expand(job, {})
        except (BundleError, GraphError):
            return frozenset()  # then the prefix alone decides
        return frozenset(topic.name for topic in expansion.topology.topics if topic.external)

    def _leave_topics(self, job: Object, message: str) -> None:
        what = f"the topics and consumer groups named {names.topic_prefix(*key_of(job))}*"
        event = events.topics_left_over(self._context.servers_of(job), what, message)
        self._context.recorder.record(job, event)

    async def _remove_checkpoints(self, job: Object) -> None:
        if (root := self._context.settings.checkpoint_root) is None:
            return
        namespace, name = key_of(job)
        path = root / namespace / f"{name}-{job['metadata']['uid']}"
        try:
            await asyncio.to_thread(shutil.rmtree, path)
        except FileNotFoundError:
            return
        except OSError as error:
            event = events.checkpoints_left_over(str(path), str(error))
            self._context.recorder.record(job, event)
