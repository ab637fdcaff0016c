"""What happens when a Job is deleted: everything of it goes, in an order that leaves nothing.

Resources are deleted in bulk by label; then, when no pod can write any more, topics and consumer
groups; then checkpoints; then the finalizer.
"""

import asyncio
import time
from collections.abc import Sequence

from streamgraft_common import names
from streamgraft_common.conditions import find
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, key_of
from streamgraft_common.resources import MadeInKafka
from streamgraft_common.timestamps import from_rfc3339
from streamgraft_operator import events
from streamgraft_operator.context import Context
from streamgraft_operator.job.checkpoints import remove_checkpoints
from streamgraft_operator.job.commands import tell
from streamgraft_operator.job.topics import look
from streamgraft_operator.kafka.client import KafkaUnavailable
from streamgraft_operator.kafka.topics import left_over
from streamgraft_operator.kit.caches import Index
from streamgraft_operator.kit.conditions import KAFKA_AVAILABLE, State
from streamgraft_operator.kit.control_loop import Again, Outcome
from streamgraft_operator.kit.coordinator import Coordinator
from streamgraft_operator.kit.external_calls import UnderWay
from streamgraft_operator.kit.parsed import job_status
from streamgraft_operator.kit.together import together
from streamgraft_operator.pe.fencing import fence_all
from streamgraft_operator.pe.lost_pods import LOST_SECONDS

Kinds = tuple[tuple[Index, Coordinator], ...]

POD_PATIENCE_SECONDS = 300.0
"""How long to wait for pods to end (their node may be gone) before topics are deleted."""
KAFKA_PATIENCE_SECONDS = 120.0
"""How long Kafka may be silent before its topics are left over."""
DELETION_WAITS = "DeletionWaits"
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
        self._out_of_kafka: set[str] = set()
        """Uids of jobs that have nothing there any more, as far as it could be deleted: nobody asks
        again while the files of checkpoints are removed, which may take minutes."""
        self._seen: dict[str, float] = {}
        """Uids of jobs that are being deleted, and when that was seen first (time.monotonic()):
        clocks of machines are never compared to wait for pods."""

    async def clean(self, job: Object) -> Outcome:
        """Take the next steps; the finalizer goes with the last."""
        key, uid = key_of(job), job["metadata"]["uid"]
        if names.FINALIZER not in job["metadata"].get("finalizers", []):
            return None
        now = time.monotonic()
        waited = now - self._seen.setdefault(uid, now)
        await self._ask_kafka_anew(job)
        await self._delete(key, self._actors())
        if waited < POD_PATIENCE_SECONDS and await self._left(key):
            return LOOK_AGAIN_SECONDS
        await self._delete(key, self._furniture())
        job = await self._context.versions.running(job)  # a refused edit has moved no topic
        # Another replica may have seen the deletion long before. To fence in vain harms nothing.
        since = time.time() - from_rfc3339(job["metadata"]["deletionTimestamp"])
        try:
            if uid not in self._out_of_kafka:
                lost = max(waited, since) >= LOST_SECONDS
                await self._delete_from_kafka(job, lost=lost)
        except UnderWay:
            return LOOK_AGAIN_SECONDS
        except KafkaUnavailable as error:
            if (rest := KAFKA_PATIENCE_SECONDS - _silent_seconds(job)) > 0:
                await self._tell(job, str(error), rest)
                return Again.WITH_BACKOFF
            self._leave_topics(job, str(error))
        self._out_of_kafka.add(uid)
        await self._delete(key, self._notes())
        try:
            if left := await remove_checkpoints(self._context.volume, job):
                self._context.recorder.record(job, left)
        except UnderWay:
            return LOOK_AGAIN_SECONDS
        await self._context.write.jobs.release(key)
        self._out_of_kafka.discard(uid)
        self._seen.pop(uid, None)
        return None

    async def _left(self, key: Key) -> bool:
        """Return whether something of the job still runs, or makes something run.

        Where the caches know of nothing, the API server is asked: they may be behind, and a pod
        that is left would meet those of the next job of this name.
        """
        actors = self._actors()
        if not any(kind.get(key) for kind, _ in actors):
            ours = f"{names.LABEL_JOB}={key[1]}"
            await together(write.refresh(key[0], ours) for _, write in actors)
        return any(kind.get(key) for kind, _ in actors)

    def _actors(self) -> Kinds:
        """Return what runs, or makes something run."""
        caches, write = self._context.caches, self._context.write
        return (
            (caches.regions_by_job, write.regions),
            (caches.processing_elements_by_job, write.processing_elements),
            (caches.exports_by_job, write.exports),
            (caches.imports_by_job, write.imports),
            (caches.pods_by_job, write.pods),
        )

    def _furniture(self) -> Kinds:
        """Return what pods use until they end."""
        caches, write = self._context.caches, self._context.write
        return (
            (caches.services_by_job, write.services),
            (caches.host_pools_by_job, write.host_pools),
        )

    def _notes(self) -> Kinds:
        """Return what says how to reach the topics of the job, among others."""
        caches, write = self._context.caches, self._context.write
        return ((caches.config_maps_by_job, write.config_maps),)

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

    async def _delete_from_kafka(self, job: Object, *, lost: bool) -> None:
        """Delete what the Job's status says that it made, and nothing else.

        `lost`: a pod may still run, on a node that is cut off from the API server and not from
        Kafka. It would write into the topics of the next job of this name.
        """
        if (made := job_status(job).made_in_kafka) is None:
            return
        kafka = self._context.kafka
        brokers = await self._context.brokers_of(job)
        there = await look(self._context, job, brokers)
        if there.id != made.cluster_id:
            self._leave_topics(job, f"they are in the Kafka cluster {made.cluster_id}")
            return
        if lost:
            await fence_all(self._context, job)
        groups = await kafka.groups(brokers)
        await kafka.delete(brokers, left_over(key_of(job), made, there, groups))

    async def _ask_kafka_anew(self, job: Object) -> None:
        """Take back that Kafka did not answer before: the silence that counts begins when it is
        asked for the topics, and the condition has the time."""
        said = find(job_status(job).conditions, KAFKA_AVAILABLE)
        if said and said.status == "False" and said.reason != DELETION_WAITS:
            message = "it is asked to delete the job's topics when all pods have ended"
            await self._say(job, State(KAFKA_AVAILABLE, "Unknown", "DeletionBegan", message))

    async def _tell(self, job: Object, message: str, rest: float) -> None:
        """Say in the Job's status why it is not gone yet."""
        message = f"{message}; in {rest:.0f} s the job goes without its topics"
        await self._say(job, State(KAFKA_AVAILABLE, "False", DELETION_WAITS, message))

    async def _say(self, job: Object, state: State) -> None:
        await tell(self._context.write.jobs, job, state)

    def _leave_topics(self, job: Object, message: str) -> None:
        made = job_status(job).made_in_kafka or MadeInKafka(cluster_id="")
        what = ", ".join(made.topics) or "nothing"
        event = events.topics_left_over(self._context.servers_of(job), what, message)
        self._context.recorder.record(job, event)


def _silent_seconds(job: Object) -> float:
    """Return for how long Kafka has not answered the deletion of a job's topics."""
    said = find(job_status(job).conditions, KAFKA_AVAILABLE)
    if said is None or said.reason != DELETION_WAITS or said.last_transition_time is None:
        return 0.0
    return time.time() - from_rfc3339(said.last_transition_time)
