"""The controller of Savepoints: shows the savepoint conductor what is there, does what it says.

Which stages stand still follows from the status of the savepoints alone: the region controller and
the parking controller take the shards away and give them back.
"""

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from weakref import WeakValueDictionary

from streamgraft_common import names
from streamgraft_common.bundle import BundleError
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, key_of
from streamgraft_common.resources import SavepointSpec, SavepointStatus, Saving
from streamgraft_common.text import listed
from streamgraft_common.timestamps import from_rfc3339
from streamgraft_operator import events
from streamgraft_operator.application.expansion import Expansion
from streamgraft_operator.context import Context
from streamgraft_operator.graph import GraphError
from streamgraft_operator.kafka.client import KafkaUnavailable
from streamgraft_operator.kit.control_loop import (
    STALE_SECONDS,
    Controller,
    Outcome,
    Watch,
    desired_changed,
)
from streamgraft_operator.kit.external_calls import UnderWay
from streamgraft_operator.kit.objects import is_owned_by, job_key, named_cut, own_key, saved_job
from streamgraft_operator.kit.parsed import job_status, pe_spec, savepoint_spec, savepoint_status
from streamgraft_operator.kit.rollbacks import is_half_back
from streamgraft_operator.pe import commands
from streamgraft_operator.pe.unseen import unseen_pods
from streamgraft_operator.savepoint.cuts import cut_number, is_foreign
from streamgraft_operator.savepoint.files import removed
from streamgraft_operator.savepoint.part import Part, begun_part, planned_part
from streamgraft_operator.savepoint.repositories import Repositories
from streamgraft_operator.savepoint.rollback import ends
from streamgraft_operator.savepoint.running import is_of_part, runs
from streamgraft_operator.savepoint.stages import JobStages, job_stages
from streamgraft_operator.savepoint.step import ACTIVE, OVER, frontier, step
from streamgraft_operator.savepoint.view import SavepointDecision, SavepointView, StageView

_FILES = "savepoint-files"
_REMOVED_SECONDS = 2.0
"""Between looks whether what a savepoint has left is removed."""
LOOK_AGAIN_SECONDS = 0.3
"""While stages are drained: positions in Kafka announce themselves by nothing."""
_FOREIGN = (
    "consistentRegion and rollsBackTo are for Savepoints that the operator makes: raise"
    " spec.requested or spec.rollbackRequested of the ConsistentRegion, or leave them out for a"
    " savepoint of the job"
)


class StagesUnknown(Exception):
    """What a job consists of is not known, or not to be saved yet; the text says why."""


class SavepointController(Controller):
    """Takes savepoints, and removes the files of deleted ones."""

    name = "savepoint"

    def __init__(self, context: Context) -> None:
        self._context = context
        self._caches = context.caches
        self._repositories = Repositories(context.client, context.external_calls, context.settings)
        self._out_of_repository: set[str] = set()
        """Uids of deleted savepoints whose repository was told; their files may take longer."""
        self._beginning: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()

    @property
    def watches(self) -> Sequence[Watch]:
        """Savepoints, and what tells of the shards of their jobs."""
        caches = self._caches
        return (
            Watch(caches.savepoints, own_key),
            Watch(caches.processing_elements, self._of_job),
            Watch(caches.regions, self._of_job),
            Watch(caches.jobs, self._under_way, desired_changed),
        )

    def rest_seconds(self, key: Key) -> float:
        """Return a time in proportion to the job's size."""
        item = self._caches.savepoints.get(key)
        return self._context.rest_seconds(saved_job(item)) if item else 0.0

    async def reconcile(self, key: Key) -> Outcome:
        """Take one step of a savepoint, or remove what a deleted one left."""
        item = self._caches.savepoints.get(key)
        if item is None:
            return None
        if "deletionTimestamp" in item["metadata"]:
            return await (self._conduct(item) if self._must_end(item) else self._remove(item))
        if (item := await self._context.write.savepoints.hold(key)) is None:
            return None
        if savepoint_status(item).phase in OVER:
            await self._ask(item, {})
            await self._repositories.remember(item)
            return None
        if savepoint_status(item).phase != "Pending":
            return await self._conduct(item)
        # Of two of a job the second sees what was written of the first, and waits for its end.
        async with self._beginning.setdefault(saved_job(item), asyncio.Lock()):
            return await self._conduct(item)

    def _must_end(self, item: Object) -> bool:
        """Return whether a savepoint that is deleted ends before it goes, as its job goes on."""
        job = self._caches.jobs.get(saved_job(item))
        if job is None or "deletionTimestamp" in job["metadata"]:
            return False
        return is_owned_by(item, job["metadata"]["uid"]) and is_half_back(item)

    async def _conduct(self, item: Object) -> Outcome:
        try:
            stages = await self._stages(item)
        except StagesUnknown as problem:
            return await self._carry_out(item, step(_view(item, str(problem))), None)
        drained, ends = await self._drained(item, stages), await self._ends(item, stages)
        decision = step(_view(item, "", stages, drained, ends))
        if await self._unseen_pods(item, stages, decision.status):
            return STALE_SECONDS
        return await self._carry_out(item, decision, stages)

    async def _carry_out(
        self, item: Object, decision: SavepointDecision, stages: JobStages | None
    ) -> Outcome:
        if decision.status.phase in OVER:  # first, so that nobody copies what runs again
            await self._ask(item, {})
        if not await self._context.write.savepoints.conclude(item, decision.status.to_wire()):
            return STALE_SECONDS
        for event in decision.events:
            self._context.recorder.record(item, event)
        if decision.status.phase in ("Saving", "Committing", "RollingBack") and stages:
            await self._ask(item, stages.owners, decision.status)
        return None if decision.status.phase in OVER else LOOK_AGAIN_SECONDS

    async def _job(self, item: Object) -> Object | None:
        """Return the job that a savepoint is of, with the spec that was accepted last."""
        job = self._caches.jobs.get(saved_job(item))
        return await self._context.versions.running(job) if job else None

    async def _stages(self, item: Object) -> JobStages:
        """Return what the job consists of. Raises StagesUnknown."""
        spec = savepoint_spec(item)
        key = saved_job(item)
        job = await self._job(item)
        if job is None or "deletionTimestamp" in job["metadata"]:
            raise StagesUnknown(f"there is no job {spec.job} in namespace {key[0]}")
        status = job_status(job)
        begun = savepoint_status(item).phase != "Pending"
        if not begun and is_foreign(item, job["metadata"]["uid"]):
            raise StagesUnknown(_FOREIGN)
        if status.phase != "Healthy" and not is_of_part(spec) and not begun:
            raise StagesUnknown(f"job {spec.job} is {status.phase}, not Healthy: {status.message}")
        part = await self._part(item, job)
        found = job_stages(self._caches, job, part, item)
        if spec.region and not found.stages:
            raise StagesUnknown(f"job {spec.job} has no region {spec.region}")
        if not found.stages:
            raise StagesUnknown(f"job {spec.job} has none of {listed(spec.operators)}")
        if not begun and part.expansion and not runs(self._caches, key, part.expansion, spec):
            edit = f"the last edit of job {spec.job} to be carried out"
            return replace(found, waiting_for=edit)
        return found

    async def _part(self, item: Object, job: Object) -> Part:
        """Return what is saved of a job. Raises StagesUnknown.

        A rollback that has begun to change checkpoints goes on with the stages that it began with:
        an edit that was accepted just before, and is not carried out, waits for it.
        """
        spec, status, key = savepoint_spec(item), savepoint_status(item), key_of(job)
        going_back = status.phase == "RollingBack"
        try:
            expansion = await self._context.expander.expand(job, self._context.widths_of(key))
        except (BundleError, GraphError) as error:
            if going_back:
                return begun_part(status)
            raise StagesUnknown(str(error)) from error
        if going_back and not runs(self._caches, key, expansion, spec):
            return begun_part(status)
        if status.phase == "Pending" and _has_changed(spec, expansion):
            raise StagesUnknown(
                f"the consistent region {spec.consistent_region} has other operators now"
            )
        return planned_part(expansion, spec)

    async def _unseen_pods(self, item: Object, stages: JobStages, new: SavepointStatus) -> bool:
        """Return whether the next step relies on what runs, and a pod may run that is not seen."""
        old = savepoint_status(item)
        relies = (old.phase, old.parked) != (new.phase, new.parked) and new.phase in ACTIVE
        if old.phase not in ACTIVE or not relies:
            return False
        namespace, job = saved_job(item)
        ours = f"{names.LABEL_JOB}={job},{names.LABEL_PE}"
        return await unseen_pods(self._context.client, namespace, ours, stages.alive)

    async def _drained(self, item: Object, stages: JobStages) -> frozenset[str]:
        """Return which stages that might be stopped next have read their inputs to the ends."""
        status = savepoint_status(item)
        next_ones = frontier(stages.stages, frozenset(status.parked))
        if status.phase != "Draining":
            return frozenset()
        job = saved_job(item)
        if (running := await self._job(item)) is None:
            return frozenset()
        try:
            brokers = await self._context.brokers_of(running)
        except KafkaUnavailable:  # as by a Secret that is being replaced: its time goes on
            return frozenset()

        async def drained(name: str) -> bool:
            group, topics = names.consumer_group(*job, name), stages.part.inner_topics[name]
            try:
                return await self._context.kafka.drained(brokers, group, topics)
            except KafkaUnavailable:
                return False

        found = [view.stage.name for view in next_ones]
        answers = await asyncio.gather(*map(drained, found))
        return frozenset(name for name, answer in zip(found, answers, strict=True) if answer)

    async def _ends(self, item: Object, stages: JobStages) -> dict[str, list[int]] | None:
        """Return where a rollback goes on, once all stand still; None before."""
        spec, status = savepoint_spec(item), savepoint_status(item)
        still = status.phase == "Draining" and all(view.stopped for view in stages.stages)
        job = await self._job(item)
        expansion = stages.part.expansion
        if spec.rolls_back_to is None or not still or job is None or expansion is None:
            return None
        try:
            return await ends(self._context, job, expansion, spec)
        except KafkaUnavailable:
            return None

    async def _ask(
        self, item: Object, owners: Mapping[Key, list[int]], status: SavepointStatus | None = None
    ) -> None:
        """Ask PEs for copies of shards, and those that are not in `owners` for none any more.

        `status`: of the savepoint, which says what else they are to do.
        """
        name, uid, spec = item["metadata"]["name"], item["metadata"]["uid"], savepoint_spec(item)
        wanted = Saving(
            savepoint=name,
            uid=uid,
            shards=[],
            stages=[saved.name for saved in status.stages] if status else [],
            cut=cut_number(item),
            kept=self._kept(item),
            commit=status is not None and status.phase in ("Committing", "RollingBack"),
            repository=spec.repository,
            rolls_back_to=spec.rolls_back_to,
            ends=status.ends if status else {},
        )
        write = self._context.write.processing_elements
        for pe in self._caches.processing_elements_by_job.get(saved_job(item)):
            key = key_of(pe)
            if shards := owners.get(key):
                await commands.save(write, key, wanted.model_copy(update={"shards": shards}))
            elif (saving := pe_spec(pe).saving) and saving.uid == uid:
                await commands.save(write, key, None)

    def _kept(self, item: Object) -> list[str]:
        """Return the savepoints that have names of cuts of its region, whoever made them: the files
        of others go."""
        if cut_number(item) is None or (cuts := named_cut(item)) is None:
            return []
        return [found["metadata"]["name"] for found in self._caches.savepoints_by_cut.get(cuts)]

    async def _remove(self, item: Object) -> Outcome:
        """Remove the files of a savepoint, also from its repository, then let it go."""
        if names.FINALIZER not in item["metadata"].get("finalizers", ()):
            return None  # that is done
        await self._ask(item, {})
        uid = item["metadata"]["uid"]
        try:
            if uid not in self._out_of_repository:
                await self._remove_copies(item)
            self._out_of_repository.add(uid)
            await self._remove_files(item)
        except UnderWay:
            return _REMOVED_SECONDS
        await self._context.write.savepoints.release(key_of(item))
        self._repositories.forget(item)
        self._context.volume.forget(key_of(item), _FILES)
        self._out_of_repository.discard(uid)
        return None

    async def _remove_copies(self, item: Object) -> None:
        """Have its repository let go of a savepoint, or tell why not. Raises UnderWay."""
        if why := await self._repositories.remove(item, others_come=self._others_come(item)):
            namespace, name = key_of(item)
            left = f"{namespace}/savepoints/{name}/{item['metadata']['uid']} in the repository"
            self._context.recorder.record(item, events.savepoint_left_over(left, why))

    async def _remove_files(self, item: Object) -> None:
        """Remove a savepoint from the operator's volume, or tell why not. Raises UnderWay."""
        volume, path = self._context.volume, names.savepoint_path(*key_of(item))
        if volume.root is None:
            why = "the operator does not see that volume"
        else:
            # One without shards never came to a copy.
            copied, uid = bool(savepoint_status(item).shards), item["metadata"]["uid"]
            work = partial(removed, volume.root / path, uid, copied=copied)
            why = await volume.ask(item, _FILES, work)
        if why and _has_files(item):
            self._context.recorder.record(item, events.savepoint_left_over(path, why))

    def _others_come(self, item: Object) -> bool:
        """Return whether a savepoint is a cut of a consistent region that goes on."""
        if cut_number(item) is None:
            return False
        job, region = saved_job(item), savepoint_spec(item).consistent_region or ""
        key = job[0], names.region_name(job[1], region)
        found = self._caches.consistent_regions.get(key)
        return found is not None and "deletionTimestamp" not in found["metadata"]

    def _of_job(self, item: Object) -> Iterable[Key]:
        return [found for job in job_key(item) for found in self._active(job)]

    def _under_way(self, job: Object) -> Iterable[Key]:
        return self._active(key_of(job))

    def _active(self, job: Key) -> Iterable[Key]:
        return [
            key_of(item)
            for item in self._caches.savepoints_by_job.get(job)
            if savepoint_status(item).phase not in OVER
        ]


def _has_changed(spec: SavepointSpec, expansion: Expansion) -> bool:
    """Return whether a cut is of a consistent region that the application has no more as it was."""
    regions = expansion.bundle.adl.consistent_regions
    now = [set(item.operators) for item in regions if item.name == spec.consistent_region]
    return spec.consistent_region is not None and now != [set(spec.operators)]


def _has_files(item: Object) -> bool:
    """Return whether files of a savepoint stay that the operator does not remove: a rollback makes
    none, and those of cuts the PEs remove."""
    return savepoint_spec(item).rolls_back_to is None and cut_number(item) is None


def _view(
    item: Object,
    problem: str,
    found: JobStages | None = None,
    drained: frozenset[str] = frozenset(),
    ends: Mapping[str, list[int]] | None = None,
) -> SavepointView:
    metadata = item["metadata"]
    stages: tuple[StageView, ...] = found.with_drained(drained) if found else ()
    return SavepointView(
        name=metadata["name"],
        generation=metadata["generation"],
        spec=savepoint_spec(item),
        status=savepoint_status(item),
        created=from_rfc3339(metadata["creationTimestamp"]),
        stages=stages,
        facts=found.facts if found else None,
        now=time.time(),
        problem=problem,
        waiting_for=found.waiting_for if found else "",
        ends=ends,
        abandoned=found.abandoned if found else "",
    )
