"""The controller of ParallelRegions: shows the region conductor what is there, does what it says.

Only here `spec.shards` and `spec.epoch` of a region's PEs are written.
"""

import time
from collections.abc import Iterable, Mapping, Sequence

from streamgraft_common import names
from streamgraft_common.bundle import BundleError
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, key_of
from streamgraft_operator import manifests
from streamgraft_operator.context import Context, owner_of
from streamgraft_operator.graph import GraphError, PlannedPe, PlannedRegion
from streamgraft_operator.kit.control_loop import (
    STALE_SECONDS,
    Again,
    Controller,
    Outcome,
    Watch,
    desired_changed,
)
from streamgraft_operator.kit.objects import content_of, own_key, region_key, saved_job
from streamgraft_operator.kit.parsed import (
    obstacle,
    pe_spec,
    region_spec,
    region_status,
    savepoint_spec,
    savepoint_status,
)
from streamgraft_operator.kit.taken import NameTaken
from streamgraft_operator.kit.together import together
from streamgraft_operator.pe import commands
from streamgraft_operator.pe.freed import is_free
from streamgraft_operator.pe.grafting import Grafter, Start
from streamgraft_operator.pe.places import displaced_pods
from streamgraft_operator.pe.pods import pe_view, pod_view, warm_pod_view
from streamgraft_operator.pe.unseen import unseen_pods
from streamgraft_operator.pe.view import PeView
from streamgraft_operator.region.metrics import ChangeCounters
from streamgraft_operator.region.step import LOOK_AGAIN_SECONDS, RegionDecision, step
from streamgraft_operator.region.view import RegionView
from streamgraft_operator.savepoint.parking import HeldBack, holds_back, parked_stages, parked_until


class RegionController(Controller):
    """Carries out width changes."""

    name = "region"

    def __init__(self, context: Context) -> None:
        self._context = context
        self._caches = context.caches
        self._grafter = Grafter(context.caches, context.write)
        self._held_back = HeldBack()
        self._counters = ChangeCounters()

    @property
    def watches(self) -> Sequence[Watch]:
        """Regions, their PEs with all that belongs to them, and their jobs."""
        caches = self._caches
        return (
            Watch(caches.regions, own_key),
            Watch(caches.processing_elements, region_key),
            Watch(caches.pods, region_key),
            Watch(caches.services, region_key, desired_changed),
            Watch(caches.config_maps, region_key, desired_changed),
            Watch(caches.jobs, self._of_job, desired_changed),
            Watch(caches.savepoints, self._of_saved),
        )

    def rest_seconds(self, key: Key) -> float:
        """Return a time in proportion to the job's size."""
        region = self._caches.regions.get(key)
        return self._context.rest_seconds((key[0], region["spec"]["job"])) if region else 0.0

    async def reconcile(self, key: Key) -> Outcome:
        """Take one step of a width change, or put right what is missing."""
        region = self._caches.regions.get(key)
        if region is None:
            self._held_back.forget(key)
            self._counters.forget(key)
        job = await self._context.running_job_of(region) if region else None
        if region is None or job is None or "deletionTimestamp" in region["metadata"]:
            return None
        if obstacle(region_spec, region):
            return None  # a condition says so
        self._counters.show(region)
        try:
            return await self._conduct(region, job)
        except (BundleError, GraphError, NameTaken):
            return Again.WITH_BACKOFF  # the job says what is wrong

    async def _conduct(self, region: Object, job: Object) -> Outcome:
        planned = await self._planned(job, region)
        if planned is None:
            return None
        if region_status(region).epoch == 0:
            # It may have been deleted, and PEs with shards be there that no watch has shown.
            namespace, name = key_of(job)
            ours = _selector(name, planned.region.name)
            await self._context.write.processing_elements.refresh(namespace, ours)
        superseded = self._superseded(job, planned)
        if superseded:
            await self._grafter.prune(owner_of(job), map(key_of, superseded))
        pods = self._caches.pods_by_job.get(key_of(job))
        if superseded or displaced_pods(pods, _stages(job, planned)):
            return LOOK_AGAIN_SECONDS
        view = self._view(job, region, planned)
        decision = step(view)
        if not await self._context.write.regions.conclude(region, decision.status.to_wire()):
            return STALE_SECONDS
        for event in decision.events:
            self._context.recorder.record(region, event)
            self._counters.count(region, event.reason)
        seconds = region_spec(region).change_deadline_seconds
        await self._save(job, planned, decision, seconds)
        if decision.on_absence and await self._unseen_pods(key_of(job)[0], view):
            return STALE_SECONDS
        seen = {names.pe_name(view.job, pe.pe_id): pe.spec_shards for pe in view.pes}
        await self._carry_out(job, region, decision, seen)
        return decision.again_in

    async def _planned(self, job: Object, region: Object) -> PlannedRegion | None:
        """Return the region as it is planned, or None if the job has not come to this graph yet."""
        spec = region_spec(region)
        name = spec.region
        expansion = await self._context.expander.expand(job, {name: spec.width})
        topology = expansion.topology
        planned = next((item for item in topology.regions if item.region.name == name), None)
        if planned is None:
            return None
        return planned if content_of(region) == expansion.region_contents[name] else None

    def _superseded(self, job: Object, planned: PlannedRegion) -> list[Object]:
        """Return PEs of this region from an earlier graph, which had other places."""

        def is_planned(item: Object) -> bool:
            spec, stages = pe_spec(item), planned.stages
            pe_id = planned.first_pe_id + (spec.channel or 0) * stages + spec.stage
            named = planned.stage_names[spec.stage : spec.stage + 1]
            return (spec.pe_id, (spec.stage_name,)) == (pe_id, named)

        return [item for item in self._pes(job, planned) if not is_planned(item)]

    def _pes(self, job: Object, planned: PlannedRegion) -> list[Object]:
        pes = self._caches.processing_elements_by_job.get(key_of(job))
        return [item for item in pes if pe_spec(item).region == planned.region.name]

    def _view(self, job: Object, region: Object, planned: PlannedRegion) -> RegionView:
        spec, now = region_spec(region), time.time()
        parked = self._parked(job, planned)
        held_back = holds_back(self._caches, key_of(job), planned.region.name)
        last = self._held_back.until(key_of(region), now, held=held_back or bool(parked))
        return RegionView(
            job=job["metadata"]["name"],
            region=planned.region.name,
            generation=region["metadata"]["generation"],
            width=spec.width,
            max_width=spec.max_width,
            stages=planned.stages,
            first_pe_id=planned.first_pe_id,
            status=region_status(region),
            pes=(*self._existing(job, planned), *self._orphans(job, planned)),
            now=now,
            deadline_seconds=float(spec.change_deadline_seconds),
            strategy=spec.strategy,
            may_sleep=spec.may_sleep,
            starts=self._starts(key_of(job), planned),
            joint=planned.joint,
            parked=parked,
            held_back=held_back,
            parked_until=max(last, parked_until(self._caches, key_of(job))),
            savepoints={
                item["metadata"]["name"]: savepoint_status(item)
                for item in self._savepoints(job, planned)
            },
        )

    def _starts(self, job: Key, planned: PlannedRegion) -> int | None:
        """Return how many channels may become warm at a time: drivers that wait cost nothing."""
        if (drivers := self._context.settings.driver_starts) is None:
            return None
        waiting = map(warm_pod_view, self._caches.pods_by_pool.get(job))
        warm = sum(pod.usable and pod.ready for pod in waiting)
        return max(1, (drivers + warm) // planned.stages)

    def _parked(self, job: Object, planned: PlannedRegion) -> frozenset[int]:
        parked = parked_stages(self._caches, key_of(job))
        return frozenset(
            pe_spec(item).stage
            for item in self._pes(job, planned)
            if pe_spec(item).stage_name in parked
        )

    def _savepoints(self, job: Object, planned: PlannedRegion) -> list[Object]:
        """Return the savepoints of width changes of the region."""
        return [
            item
            for item in self._caches.savepoints_by_job.get(key_of(job))
            if savepoint_spec(item).region == planned.region.name
            and names.LABEL_REGION in item["metadata"].get("labels", {})
        ]

    def _existing(self, job: Object, planned: PlannedRegion) -> Iterable[PeView]:
        return [
            pe_view(self._caches, item)
            for item in self._pes(job, planned)
            if "deletionTimestamp" not in item["metadata"]
        ]

    def _orphans(self, job: Object, planned: PlannedRegion) -> Iterable[PeView]:
        """Return PEs that are gone while a pod of theirs may still run."""
        seen = set()
        for pod in self._caches.pods_by_job.get(key_of(job)):
            labels = pod["metadata"]["labels"]
            pe = labels.get(names.LABEL_PE, "")
            if labels.get(names.LABEL_REGION) != planned.region.name or pe in seen:
                continue
            item = self._caches.processing_elements.get((key_of(job)[0], pe))
            if item and "deletionTimestamp" not in item["metadata"]:
                continue
            if not pod_view(pod).alive:
                continue
            seen.add(pe)
            channel, stage = int(labels[names.LABEL_CHANNEL]), int(labels[names.LABEL_STAGE])
            pe_id = planned.first_pe_id + channel * planned.stages + stage
            yield PeView(pe_id, channel, stage, exists=False, pod_alive=True, orphaned=True)

    async def _unseen_pods(self, namespace: str, view: RegionView) -> bool:
        """Return whether the region has a pod that may run and is not in the view."""
        seen = {names.pe_name(view.job, pe.pe_id) for pe in view.pes if pe.pod_alive}
        ours = _selector(view.job, view.region)
        return await unseen_pods(self._context.client, namespace, ours, seen)

    async def _carry_out(
        self,
        job: Object,
        item: Object,
        decision: RegionDecision,
        seen: Mapping[str, frozenset[int]],
    ) -> None:
        """Write what was decided; `seen`: the shards of each PE that it was decided on.

        If the application is another one by now, the same names may be those of other places.
        """
        region = region_spec(item).region
        expansion = await self._context.expander.expand(job, {region: decision.channels})
        if expansion.region_contents.get(region) != content_of(item):
            return
        namespace, name = key_of(job)
        updates = {
            names.pe_name(name, pe_id): update for pe_id, update in decision.spec_updates.items()
        }
        await together(
            commands.assign(
                self._context.write.processing_elements, (namespace, pe), seen[pe], *update
            )
            for pe, update in updates.items()
            if pe in seen and self._caches.processing_elements.get((namespace, pe))
        )

        def start(pe: PlannedPe) -> Start:
            # One that was there when this was decided may be gone, and its last pod still run: an
            # epoch that it has not confirmed keeps its shards from others until it does.
            return updates.get(pe.name, ((), decision.status.epoch))

        wanted = [pe for pe in expansion.topology.pes if pe.region == region]
        await self._grafter.graft(owner_of(job), expansion, wanted, start)
        keep = {pe.name for pe in wanted}
        surplus = self._grafter.surplus(key_of(job), keep, lambda name: name == region)
        await together(self._free(pe) for pe in surplus)
        await self._grafter.prune(owner_of(job), surplus)

    async def _free(self, key: Key) -> None:
        """Delete a channel's PE so that its pod goes back to the warm pool, if that may be."""
        item = self._caches.processing_elements.get(key)
        if item is None or "deletionTimestamp" in item["metadata"] or not is_free(item):
            return
        self._context.freed.add(item)
        if not await self._context.write.processing_elements.delete(item, unchanged=True):
            self._context.freed.discard(item)

    async def _save(
        self, job: Object, planned: PlannedRegion, decision: RegionDecision, seconds: int
    ) -> None:
        """Create the savepoint that a change waits for; only that of the last change is kept."""
        name = decision.savepoint
        existing = {item["metadata"]["name"]: item for item in self._savepoints(job, planned)}
        if name and name not in existing:
            manifest = manifests.width_savepoint(owner_of(job), planned, name, seconds)
            await self._context.write.savepoints.create(manifest)
        used = [change.savepoint for change in decision.status.changes if change.savepoint]
        for old in existing.keys() - set(used[-1:]):
            await self._context.write.savepoints.delete(existing[old])

    def _of_saved(self, savepoint: Object) -> Iterable[Key]:
        regions = self._caches.regions_by_job.get(saved_job(savepoint))
        return [key_of(region) for region in regions]

    def _of_job(self, job: Object) -> Iterable[Key]:
        return [key_of(region) for region in self._caches.regions_by_job.get(key_of(job))]


def _stages(job: Object, planned: PlannedRegion) -> dict[str, str]:
    """Return the stages of all PEs that the region may have, by their names."""
    return {
        names.pe_name(job["metadata"]["name"], planned.first_pe_id + number): stage
        for number, stage in enumerate(planned.stage_names * planned.region.max_width)
    }


def _selector(job: str, region: str) -> str:
    return f"{names.LABEL_JOB}={job},{names.LABEL_REGION}={region}"
