"""The controller of ConsistentRegions: shows the step what is there, does what it says."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from streamgraft_common import names
from streamgraft_common.bundle import BundleError
from streamgraft_common.conditions import is_true
from streamgraft_common.edits import goes_on
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, key_of
from streamgraft_common.resources import SavedStage
from streamgraft_operator import manifests
from streamgraft_operator.consistent_region import elements
from streamgraft_operator.consistent_region.step import GIVEN_UP, ConsistentRegionDecision, step
from streamgraft_operator.consistent_region.view import ConsistentRegionView, CutView
from streamgraft_operator.context import Context, owner_of
from streamgraft_operator.graph import GraphError
from streamgraft_operator.kit.control_loop import (
    STALE_SECONDS,
    Controller,
    Outcome,
    Watch,
    desired_changed,
    status_changed,
)
from streamgraft_operator.kit.objects import is_owned_by, own_key, saved_job
from streamgraft_operator.kit.parsed import (
    consistent_region_spec,
    consistent_region_status,
    job_status,
    pe_spec,
    region_spec,
    region_status,
    savepoint_spec,
    savepoint_status,
)
from streamgraft_operator.kit.rollbacks import is_going


class ConsistentRegionController(Controller):
    """Has cuts taken of each region, and keeps the last ones."""

    name = "consistent-region"

    def __init__(self, context: Context) -> None:
        self._context = context
        self._caches = context.caches

    @property
    def watches(self) -> Sequence[Watch]:
        """The regions, the Savepoints of their cuts, their PEs, and whether jobs are healthy."""
        caches = self._caches
        return (
            Watch(caches.consistent_regions, own_key, desired_changed),
            Watch(caches.savepoints, self._of_savepoint),
            Watch(caches.jobs, self._of_job, status_changed("phase")),
            Watch(caches.processing_elements, self._of_element, elements.matters),
        )

    async def reconcile(self, key: Key) -> Outcome:
        """Take one step of a region."""
        item = self._caches.consistent_regions.get(key)
        if item is None or "deletionTimestamp" in item["metadata"]:
            return None
        decision = step(self._view(item, await self._stages(item)))
        return await self._carry_out(item, decision)

    async def _stages(self, item: Object) -> list[SavedStage] | None:
        """Return the stages of today with operators of a region; None if they are not known."""
        job = self._context.living_job_of(item)
        if job is None:
            return None
        try:
            widths = self._context.widths_of(key_of(job))
            expansion = await self._context.expander.expand(job, widths)
        except (BundleError, GraphError):
            return None  # the Job says what is wrong
        members = set(consistent_region_spec(item).operators)
        return [stage for stage in expansion.stages if members.intersection(stage.operators)]

    def _view(self, item: Object, stages: list[SavedStage] | None) -> ConsistentRegionView:
        spec, there = consistent_region_spec(item), self._savepoints(item)
        ours, pes = self._ours(item, there), self._elements(item)
        cuts = {
            cut.number: replace(cut, fits=stages is None or goes_on(cut.status.stages, stages))
            for cut in _cuts(item, ours)
        }
        known = {stage.name for cut in cuts.values() for stage in cut.status.stages}
        return ConsistentRegionView(
            name=spec.region,
            generation=item["metadata"]["generation"],
            spec=spec,
            status=consistent_region_status(item),
            cuts=cuts,
            last_number=max((cut.number for cut in _cuts(item, there)), default=0),
            rollbacks={cut.number: cut for cut in _rollbacks(item, ours)},
            last_rollback=max((cut.number for cut in _rollbacks(item, there)), default=0),
            failures=elements.failures(spec, known, pes),
            let_pass=elements.let_pass(spec, known, pes),
            over=elements.over(pes),
            unheld=elements.unheld(pes),
            requests=elements.requests(spec, pes),
            now=time.time(),
            taken=self._taken(item, self._of_this_job(item, there)),
            going=frozenset(cut.number for cut in _cuts(item, self._going(item, there))),
            waiting_for=self._waiting_for(item, stages),
            held_up_by=self._held_up_by(item, stages),
        )

    def _waiting_for(self, item: Object, stages: list[SavedStage] | None) -> str:
        spec = consistent_region_spec(item)
        job = self._context.living_job_of(item)
        if job is not None and (phase := job_status(job).phase) != "Healthy":
            return f"job {spec.job} to be Healthy (it is {phase})"
        return self._held_up_by(item, stages)

    def _held_up_by(self, item: Object, stages: list[SavedStage] | None) -> str:
        """Return what a rollback waits for, too: the job need not be well for that."""
        job = self._context.living_job_of(item)
        if job is None:
            return f"job {consistent_region_spec(item).job}"
        return held_up_by(self._caches.regions_by_job.get(key_of(job)), stages)

    def _ours(self, item: Object, savepoints: Iterable[Object]) -> list[Object]:
        """Return those that are of this job, and are not being deleted, or end all the same."""
        of_job = self._of_this_job(item, savepoints)
        return [found for found in of_job if not is_going(found)]

    def _going(self, item: Object, savepoints: Iterable[Object]) -> list[Object]:
        """Return those that are of this job, and are being deleted."""
        of_job = self._of_this_job(item, savepoints)
        return [found for found in of_job if "deletionTimestamp" in found["metadata"]]

    def _of_this_job(self, item: Object, savepoints: Iterable[Object]) -> list[Object]:
        job = self._context.living_job_of(item)
        uid = job["metadata"]["uid"] if job else None
        return [found for found in savepoints if uid and is_owned_by(found, uid)]

    def _taken(self, item: Object, savepoints: Iterable[Object]) -> str:
        """Return which Savepoint, that is none of these, has the name of the one under way."""
        namespace, region = key_of(item)
        status = consistent_region_status(item)
        match status.state:
            case "Draining":
                name = names.cut_savepoint(region, status.sequence_id)
            case "RollingBack":
                name = names.rollback_savepoint(region, status.rollback_id)
            case _:
                return ""
        ours = {found["metadata"]["name"] for found in savepoints}
        found = self._caches.savepoints.get((namespace, name))
        return name if found and name not in ours and self._context.living_job_of(item) else ""

    def _elements(self, item: Object) -> Sequence[Object]:
        """Return all PEs of the region's job."""
        job = self._context.living_job_of(item)
        return self._caches.processing_elements_by_job.get(key_of(job)) if job else []

    def _savepoints(self, item: Object) -> list[Object]:
        """Return the Savepoints of cuts and rollbacks of regions of this name."""
        key, region = key_of(item), consistent_region_spec(item)
        return [
            found
            for found in self._caches.savepoints_by_job.get((key[0], region.job))
            if savepoint_spec(found).consistent_region == region.region
        ]

    async def _carry_out(self, item: Object, decision: ConsistentRegionDecision) -> Outcome:
        write = self._context.write
        status = decision.status.to_wire()
        if not await write.consistent_regions.conclude(item, status):
            return STALE_SECONDS
        for event in decision.events:
            self._context.recorder.record(item, event)
        if decision.give_up and not await self._give_up((key_of(item)[0], decision.give_up)):
            return STALE_SECONDS
        if (job := self._context.living_job_of(item)) is not None:
            for manifest in _savepoints(item, decision, job):
                if not is_owned_by(await write.savepoints.create(manifest), job["metadata"]["uid"]):
                    return STALE_SECONDS
        for name in decision.delete:
            if (old := self._caches.savepoints.get((key_of(item)[0], name))) is not None:
                await write.savepoints.delete(old)
        return decision.again_seconds

    async def _give_up(self, key: Key) -> bool:
        """Delete the Savepoint of a cut that still drains. Return whether that was done."""
        cut = self._caches.savepoints.get(key)
        if cut is None or savepoint_status(cut).phase not in GIVEN_UP:
            return False
        return await self._context.write.savepoints.delete(cut, unchanged=True)

    def _of_savepoint(self, savepoint: Object) -> Iterable[Key]:
        region = savepoint_spec(savepoint).consistent_region
        if region is None:
            return ()
        namespace, job = saved_job(savepoint)
        return ((namespace, names.region_name(job, region)),)

    def _of_element(self, element: Object) -> Iterable[Key]:
        job = key_of(element)[0], pe_spec(element).job
        return [key_of(item) for item in self._caches.consistent_regions_by_job.get(job)]

    def _of_job(self, job: Object) -> Iterable[Key]:
        found = self._caches.consistent_regions_by_job.get(key_of(job))
        return [key_of(item) for item in found]


def held_up_by(regions: Iterable[Object], stages: Iterable[SavedStage] | None) -> str:
    """Return which parallel region of a job nothing can be cut beside; '' if there is none. Pure.

    `stages`: those to be cut, None if they are not known. Who sleeps elsewhere has nothing in them.
    """
    ours = None if stages is None else {stage.region for stage in stages}
    for region in regions:
        name, status = region_spec(region).region, region_status(region)
        if status.asleep and (ours is None or name in ours):
            return f"region {name} to be woken (set its width to 1)"
        if is_true(status.conditions, "Resizing"):
            return f"the width change of region {name} to end"
    return ""


def _cuts(item: Object, savepoints: Iterable[Object]) -> Iterator[CutView]:
    return _numbered(item, savepoints, names.cut_number)


def _rollbacks(item: Object, savepoints: Iterable[Object]) -> Iterator[CutView]:
    return _numbered(item, savepoints, names.rollback_number)


def _numbered(
    item: Object, savepoints: Iterable[Object], number_of: Callable[[str, str], int | None]
) -> Iterator[CutView]:
    """Yield those that a region's controller made; a user may have made others for the region."""
    for savepoint in savepoints:
        name = savepoint["metadata"]["name"]
        number = number_of(name, item["metadata"]["name"])
        if number is not None:
            operators = frozenset(savepoint_spec(savepoint).operators)
            yield CutView(number, name, savepoint_status(savepoint), operators)


def _savepoints(item: Object, decision: ConsistentRegionDecision, job: Object) -> Iterator[Object]:
    """Yield the manifests of what is to be created: of a cut, or of a rollback."""
    spec, owner = consistent_region_spec(item), owner_of(job)
    if decision.create is not None:
        yield manifests.cut_savepoint(owner, spec, decision.create)
    if decision.roll_back is not None:
        cut = decision.status.rolls_back_to
        yield manifests.rollback_savepoint(owner, spec, decision.roll_back, cut)
