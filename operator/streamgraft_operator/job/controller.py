"""The controller of Jobs: the submission pipeline (cloud native Streams, section 6.1).

Bundle → topology → topics → regions and PEs. The same path serves submission, resubmission,
width changes and repair: whatever exists as planned is left alone.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress

from streamgraft_common import names
from streamgraft_common.bundle import BundleError
from streamgraft_common.conditions import BUNDLE_AWAITED, WITHOUT_BUNDLE, find, is_true
from streamgraft_common.kinds import POD
from streamgraft_common.kube import Conflict
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, key_of
from streamgraft_common.resources import HOST_POOL, JobStatus
from streamgraft_common.restore import NotRestorable, check, check_stays, check_whole
from streamgraft_operator import events, manifests
from streamgraft_operator.application.bundles import FILE_PURPOSE, BundleAwaited
from streamgraft_operator.application.expansion import Expansion
from streamgraft_operator.application.references import Reference, references
from streamgraft_operator.certificates import CertificateError
from streamgraft_operator.context import Context, owner_of
from streamgraft_operator.graph import Change, GraphError, PlannedPe, Topology, diff
from streamgraft_operator.job import checkpoints
from streamgraft_operator.job.access import AccessKeeper, AccountRefused
from streamgraft_operator.job.brokers import check_brokers
from streamgraft_operator.job.certificates import certify
from streamgraft_operator.job.commands import report, tell
from streamgraft_operator.job.declared import DeclaredPlanter
from streamgraft_operator.job.deletion import Cleaner
from streamgraft_operator.job.edits import EditChecker
from streamgraft_operator.job.holding import held_by
from streamgraft_operator.job.names_taken import check_names
from streamgraft_operator.job.planting import ConsistentRegionPlanter, RegionPlanter
from streamgraft_operator.job.rollback import LOOK_AGAIN_SECONDS, Rollback
from streamgraft_operator.job.topics import KafkaAwaited, TopicKeeper
from streamgraft_operator.kafka.client import KafkaUnavailable
from streamgraft_operator.kit import metrics
from streamgraft_operator.kit.conditions import (
    ACCEPTED,
    GRAPH_INVALID,
    KAFKA_UNAVAILABLE,
    POD_FORBIDDEN,
    READY,
    REFERENCES_FOUND,
    SUBMITTED,
    State,
    Status,
)
from streamgraft_operator.kit.config_maps import replace_config_map
from streamgraft_operator.kit.control_loop import Again, Controller, Outcome, Watch, desired_changed
from streamgraft_operator.kit.external_calls import UnderWay
from streamgraft_operator.kit.objects import content_of, job_key, own_key
from streamgraft_operator.kit.parsed import job_spec, job_status, savepoint_status
from streamgraft_operator.kit.taken import NameTaken
from streamgraft_operator.manifests.metadata import Owner
from streamgraft_operator.pe.grafting import Grafter, Start, contents_of
from streamgraft_operator.pe.places import displaced, displaced_pods
from streamgraft_operator.savepoint.parking import parked_stages
from streamgraft_operator.settings import submission_of
from streamgraft_operator.stream_broker.planting import StreamPlanter

AWAITED_RETRY_SECONDS = 1.0
"""The watch of ConfigMaps is usually sooner."""

TOPICS_RETRY_SECONDS = 3.0
"""Brokers that come back and topics that are created announce themselves by nothing."""

COUNTED_SECONDS = 0.1
"""Until the next look, once a source has another number of partitions: slots follow from it."""


class JobController(Controller):
    """Submits jobs, keeps what they consist of, and cleans up."""

    name = "job"

    def __init__(self, context: Context) -> None:
        self._context = context
        self._caches = context.caches
        self._grafter = Grafter(context.caches, context.write)
        self._cleaner = Cleaner(context)
        self._rollback = Rollback(context)
        self._access = AccessKeeper(context.client)
        self._regions = RegionPlanter(context)
        self._consistent_regions = ConsistentRegionPlanter(context)
        self._topics = TopicKeeper(context)
        self._streams = StreamPlanter(context)
        self._declared = DeclaredPlanter(context)
        self._edits = EditChecker(context)

    @property
    def watches(self) -> Sequence[Watch]:
        """Jobs, whatever belongs to them, and their bundles."""
        caches = self._caches
        return (
            Watch(caches.jobs, own_key, desired_changed),
            Watch(caches.jobs, own_key, submission_changed),
            Watch(caches.processing_elements, job_key, desired_changed),
            Watch(caches.regions, job_key, desired_changed),
            Watch(caches.consistent_regions, job_key, desired_changed),
            Watch(caches.services, job_key, desired_changed),
            Watch(caches.host_pools, job_key, desired_changed),
            Watch(caches.exports, job_key, desired_changed),
            Watch(caches.imports, job_key, desired_changed),
            Watch(caches.pods, job_key, desired_changed),
            Watch(caches.config_maps, job_key, desired_changed),
            Watch(caches.config_maps, self._bundle_users),
        )

    def rest_seconds(self, key: Key) -> float:
        """Return a time in proportion to the job's size."""
        return self._context.rest_seconds(key)

    async def reconcile(self, key: Key) -> Outcome:
        """Take a job from what exists to what it wants."""
        job = self._caches.jobs.get(key)
        if job is None:
            calls = self._context.external_calls
            calls.forget(key, "bundle", FILE_PURPOSE, "kafka", checkpoints.PURPOSE)
            self._access.forget(key[0])
            return None
        if "deletionTimestamp" in job["metadata"]:
            return await self._cleaner.clean(job)
        if (job := await self._context.write.jobs.hold(key)) is None:
            return None
        if await self._rollback.carry_on(job):  # before a bundle is fetched, which would go, too
            return LOOK_AGAIN_SECONDS
        try:
            await self._access.ensure(key[0])  # before all that may refuse an edit
            await certify(self._context, job)
            source = job_spec(job).bundle
            generation = job["metadata"]["generation"]
            await self._context.bundles.refresh(owner_of(job), source, generation)
            if not await self._context.bundles.caught_up(job, source):
                return AWAITED_RETRY_SECONDS
            widths = self._context.widths_of(key)
            expansion = await self._context.expander.expand_submitted(job, widths)
            manifests.check_pods(owner_of(job), expansion.spec, self._context.settings)
            self._regions.check(key, expansion.topology)
            self._check_savepoint(job, expansion)
            check_names(self._caches, owner_of(job), expansion)
            dropped = await self._edits.check(job, expansion)
            await check_brokers(self._context, job, expansion.topology)
            rollback = held_by(self._caches, key, expansion)
            if not rollback and (before := await self._edits.before(job, expansion)):
                await self._topics.prepare(job, before.topology, expansion.topology)
        except KafkaAwaited as error:
            return await self._await(job, KAFKA_UNAVAILABLE, str(error))
        except (UnderWay, BundleAwaited) as error:
            message = str(error) or "the bundle is being fetched: its server has not answered yet"
            return await self._await(job, BUNDLE_AWAITED, message)
        except KafkaUnavailable as error:
            return await self._reject(job, KAFKA_UNAVAILABLE, str(error), "Unknown")
        except (AccountRefused, BundleError, CertificateError, NameTaken) as error:
            return await self._reject(job, error.reason, str(error))
        except GraphError as error:
            return await self._reject(job, GRAPH_INVALID, str(error))
        except manifests.PodForbidden as error:
            return await self._reject(job, POD_FORBIDDEN, str(error))
        if rollback:
            return await self._hold(job, rollback)
        return await self._submit(job, expansion, dropped)

    async def _submit(self, job: Object, expansion: Expansion, dropped: Collection[str]) -> Outcome:
        try:
            await self._context.versions.accept(owner_of(job), job, expansion.version)
            return await self._plant(await self._begin(job, expansion), expansion, dropped)
        except NameTaken as error:  # by what has come just now
            return await self._reject(job, error.reason, str(error))
        except GraphError as error:
            return await self._reject(job, GRAPH_INVALID, str(error))

    async def _plant(self, job: Object, expansion: Expansion, dropped: Collection[str]) -> Outcome:
        """Make what a version of a job consists of, and prune what it does not. Raises
        NameTaken."""
        key, topology, owner = key_of(job), expansion.topology, owner_of(job)
        await self._edits.note(job, expansion, dropped)
        await self._declared.plant(job, owner, expansion)
        # Both are reported before either is awaited.
        missing = await self._references(job, expansion)
        status = job_status(job)
        problem, seen = await self._topics.ensure(job, topology)
        if job_status(seen).source_topics != status.source_topics:
            return COUNTED_SECONDS
        if problem and not is_true(status.conditions, SUBMITTED):
            return TOPICS_RETRY_SECONDS
        await self._regions.plant(owner, expansion)
        await self._consistent_regions.plant(owner, expansion)
        await self._streams.plant(owner, expansion)
        outside = [pe for pe in topology.pes if pe.region is None]
        if await self._displaced(owner, outside):
            return LOOK_AGAIN_SECONDS
        parked = parked_stages(self._caches, key)

        def start(pe: PlannedPe) -> Start:
            return () if pe.stage_name in parked else (0,), 1

        await self._grafter.graft(owner, expansion, outside, start)
        await self._prune(owner, topology)
        own = self._caches.config_maps.get((key[0], names.job_config_map(key[1])))
        if content_of(own) != expansion.content_id:
            labels, content_id = topology.port_labels, expansion.content_id
            stages = expansion.stages
            volume = expansion.checkpoints
            manifest = manifests.job_config_map(owner, labels, stages, content_id, volume)
            await replace_config_map(self._caches, self._context.write, manifest)
        return TOPICS_RETRY_SECONDS if problem or missing else None

    async def _begin(self, job: Object, expansion: Expansion) -> Object:
        """Give new content a generation id, stored before anything is made with it."""
        key = key_of(job)
        status = job_status(job)
        generation_id, fresh = self._generation(key, status, expansion.content_id)
        pes = len(expansion.topology.pes)
        states = [State(ACCEPTED, "True", "Planned", f"the graph has {pes} PEs")]
        image = self._context.settings.image_of(status, job["metadata"])
        generation, submission = submission_of(job["metadata"])
        used = expansion.spec.processing_element.image == image
        if used and status.image not in (None, image) and status.image_generation == generation:
            # Of the same spec nothing else says that its health is that of before.
            states.append(State(READY, "False", "ImageChanged", f"pods get the image {image}"))
        written = await report(
            self._context.write.jobs,
            key,
            states,
            generation,
            generation_id=generation_id,
            bundle_digest=expansion.bundle.digest,
            image=image,
            image_generation=generation,
            image_submission=submission,
        )
        if written is None:
            raise Conflict(409, "Conflict", f"job {key[1]} is gone")
        if fresh:
            changes = self._changes(key, expansion)
            for change, count in changes.items():
                metrics.PE_CHANGES.labels(change).inc(count)
            self._context.recorder.record(job, events.generation_began(generation_id, changes))
        return written

    def _check_savepoint(self, job: Object, expansion: Expansion) -> None:
        """Raise GraphError if a job can't start from the savepoint that it names, or has to before
        it may have this graph."""
        wanted, submitted = expansion.spec.savepoint, job_status(job)
        if wanted is None or submitted.restored:
            return
        item = self._caches.savepoints.get((key_of(job)[0], wanted.name))
        if item is None and submitted.submitted_generation:
            return  # the PEs tell whether one of their shards still needs it
        if item is None:
            raise GraphError(
                f"there is no savepoint {wanted.name}: see `streamgraft savepoint list`"
            )
        stages = expansion.stages
        try:
            check_whole(wanted.name, item["spec"])
            if not submitted.submitted_generation:
                check_stays(wanted.name, item["metadata"])
            check(wanted.name, savepoint_status(item), stages, drop=wanted.allow_dropped_state)
        except NotRestorable as error:
            raise GraphError(str(error)) from error

    def _changes(self, key: Key, expansion: Expansion) -> dict[Change, int]:
        """Return how many PEs the submission changes, by what the change takes."""
        existing = contents_of(self._caches.processing_elements_by_job.get(key))
        return Counter(diff(existing, expansion.contents).values())

    def _generation(self, key: Key, status: JobStatus, content_id: str) -> tuple[int, bool]:
        """Return the generation id of this content and whether it is a new one.

        The job's ConfigMap is written last. If the status is ahead of it, a submission was
        interrupted and goes on under the same id.
        """
        done = self._caches.config_maps.get((key[0], names.job_config_map(key[1])))
        if content_of(done) == content_id:
            return status.generation_id, False
        label = done["metadata"].get("labels", {}).get(names.LABEL_GENERATION) if done else "0"
        if label is not None and status.generation_id > int(label):
            return status.generation_id, False
        return status.generation_id + 1, True

    async def _references(self, job: Object, expansion: Expansion) -> bool:
        """Report whether something that the job names is missing: its pods wait for it."""
        pe = expansion.spec.processing_element
        pools = {planned.placement.host_pool for planned in expansion.topology.pes}
        wanted = [
            *references(pe, pe.checkpoint_repository, expansion.spec.transport_security),
            *(Reference(HOST_POOL, pool, "placement") for pool in sorted(filter(None, pools))),
        ]
        missing = await self._context.references.missing(key_of(job)[0], wanted)
        state = State(REFERENCES_FOUND, "True", "AllExist", "all that the job names exists")
        if missing:
            event = events.references_missing(missing)
            self._context.recorder.record(job, event)
            state = State(REFERENCES_FOUND, "False", event.reason, event.message)
        await tell(self._context.write.jobs, job, state)
        return bool(missing)

    async def _await(self, job: Object, reason: str, message: str) -> Outcome:
        """Say what has not answered, if nothing else was said of this spec, and look again.

        Kafka is asked behind the bundle, so that is there, whatever was said of it.
        """
        status, generation = job_status(job), job["metadata"]["generation"]
        said = find(status.conditions, ACCEPTED)
        outdated = said is None or (said.observed_generation or 0) < generation
        if said and reason == KAFKA_UNAVAILABLE:
            outdated |= said.reason in WITHOUT_BUNDLE
        if outdated:
            accepted: Status = "Unknown" if status.submitted_generation else "False"
            state = State(ACCEPTED, accepted, reason, message)
            await tell(self._context.write.jobs, job, state)
        await self._keep(job)
        return AWAITED_RETRY_SECONDS

    async def _reject(
        self, job: Object, reason: str, message: str, accepted: Status = "False"
    ) -> Outcome:
        """Say why a spec is not accepted; `accepted`: Unknown if that passes by itself."""
        self._context.recorder.record(job, events.job_rejected(reason, message))
        state = State(ACCEPTED, accepted, reason, message)
        await tell(self._context.write.jobs, job, state)
        await self._keep(job)
        return Again.WITH_BACKOFF

    async def _keep(self, job: Object) -> None:
        """Keep what runs behind an edit that was refused or waits: go on with the version before
        it."""
        key, versions = key_of(job), self._context.versions
        # The attempt may have noted topics that it made; what is kept must not forget them.
        job = self._caches.jobs.get(key) or job
        if not job_status(job).submitted_generation or await versions.accepted(job) is None:
            return
        job = await versions.running(job)
        try:
            expansion = await self._context.expander.expand(job, self._context.widths_of(key))
            dropped = await self._edits.check(job, expansion)
        except GraphError:
            return  # the Job says what is wrong
        if not held_by(self._caches, key, expansion):
            with suppress(NameTaken):  # likewise
                await self._plant(job, expansion, dropped)

    async def _hold(self, job: Object, rollback: str) -> Outcome:
        event = events.edit_held(rollback)
        self._context.recorder.record(job, event)
        state = State(ACCEPTED, "Unknown", event.reason, event.message)
        await tell(self._context.write.jobs, job, state)
        await self._keep(job)
        return LOOK_AGAIN_SECONDS

    async def _displaced(self, owner: Owner, outside: Sequence[PlannedPe]) -> bool:
        """Delete PEs outside of regions whose stage another PE has now; return whether one of
        them is left, or a pod of such a PE."""
        key = owner.namespace, owner.name
        stages = {pe.name: pe.stage_name for pe in outside}
        pes = [
            item
            for item in self._caches.processing_elements_by_job.get(key)
            if displaced(item["metadata"]["labels"], stages)
        ]
        await self._grafter.prune(owner, map(key_of, pes))
        if pes or displaced_pods(self._caches.pods_by_job.get(key), stages):
            return True
        if all(self._caches.processing_elements.get((key[0], name)) for name in stages):
            return False
        ours = f"{names.LABEL_JOB}={key[1]},!{names.LABEL_REGION}"
        path = POD.path(key[0])  # some may not be in the cache yet
        pods = await self._context.client.list(path, {"labelSelector": ours})
        return displaced_pods(pods["items"], stages)

    async def _prune(self, owner: Owner, topology: Topology) -> None:
        wanted = {pe.name for pe in topology.pes}
        regions = {region.region.name for region in topology.regions}
        key = owner.namespace, owner.name
        surplus = self._grafter.surplus(key, wanted, lambda name: name not in regions)
        await self._grafter.prune(owner, surplus)

    def _bundle_users(self, config_map: Object) -> Iterable[Key]:
        return self._context.bundles.users_of(key_of(config_map))


def submission_changed(old: Object | None, new: Object | None) -> bool:
    """Return whether the reason of the job's condition Submitted changed."""

    def reason(job: Object | None) -> str | None:
        conditions = ((job or {}).get("status") or {}).get("conditions", [])
        return next((item["reason"] for item in conditions if item["type"] == SUBMITTED), None)

    return reason(old) != reason(new)
