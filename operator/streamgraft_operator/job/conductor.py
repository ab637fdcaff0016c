"""Drives the job conductor: compares what a job should consist of with what exists."""

import math
import time
from collections.abc import Sequence

from streamgraft_common import names
from streamgraft_common.bundle import BundleError
from streamgraft_common.conditions import find
from streamgraft_common.content import Content
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, key_of
from streamgraft_common.resources import JobStatus
from streamgraft_common.resources.processing_element import ProcessingElementStatus
from streamgraft_common.timestamps import from_rfc3339
from streamgraft_operator.application.expansion import Expansion
from streamgraft_operator.context import Context
from streamgraft_operator.graph import GraphError, Topology
from streamgraft_operator.job.commands import report, tell
from streamgraft_operator.job.step import JobView, step
from streamgraft_operator.kit.conditions import ACCEPTED, READY, ROLLING_BACK, SUBMITTED, State
from streamgraft_operator.kit.control_loop import (
    Controller,
    Outcome,
    Watch,
    desired_changed,
    either,
    runtime_changed,
    status_changed,
)
from streamgraft_operator.kit.objects import content_of, job_key, own_key
from streamgraft_operator.kit.parsed import (
    job_spec,
    job_status,
    obstacle,
    pe_spec,
    pe_status,
    region_spec,
    region_status,
)
from streamgraft_operator.region.rollback import avoided
from streamgraft_operator.region.shards import assigned_width

RESTORING_SECONDS = 2.0
"""While a job's shards begin from a savepoint: each of them is no news of the job's health."""


_channels_due = either(desired_changed, status_changed("assignment", "avoided"))
"""Whether other channels of a region may be due."""
_readiness = either(status_changed("phase", "message"), runtime_changed("contentId"))
"""Whether a PE may have become ready, or is no longer."""


class JobConductor(Controller):
    """Submitting → Submitted → Healthy."""

    name = "job-conductor"

    def __init__(self, context: Context) -> None:
        self._context = context
        self._caches = context.caches

    @property
    def watches(self) -> Sequence[Watch]:
        """Jobs and all that they consist of."""
        caches = self._caches
        return (
            Watch(caches.jobs, own_key),
            Watch(caches.processing_elements, job_key, _readiness),
            Watch(caches.regions, job_key, _channels_due),
            Watch(caches.services, job_key, desired_changed),
            Watch(caches.config_maps, job_key, desired_changed),
        )

    def rest_seconds(self, key: Key) -> float:
        """Return a time in proportion to the job's size."""
        return self._context.rest_seconds(key)

    async def reconcile(self, key: Key) -> Outcome:
        """Report whether the job is submitted and healthy."""
        job = self._caches.jobs.get(key)
        if job is None or "deletionTimestamp" in job["metadata"]:
            return None
        status = job_status(job)
        accepted = find(status.conditions, ACCEPTED)
        generation = job["metadata"]["generation"]
        if accepted is None or accepted.observed_generation != generation:
            return None
        # Of what is refused, or waits, nothing is measured: what runs is the version before it.
        asked, version = accepted.status == "True", await self._context.versions.accepted(job)
        if not asked and version is None:
            return None
        submitted = find(status.conditions, SUBMITTED)
        if submitted and submitted.reason == ROLLING_BACK:
            return None  # the job controller's
        regions = self._caches.regions_by_job.get(key)
        if unreadable := [item for item in regions if obstacle(region_spec, item)]:
            await self._tell_unreadable(job, unreadable[0])
            return None
        widths = {region_spec(item).region: _width_due(item, time.time()) for item in regions}
        try:
            expansion = await self._context.expander.expand(job, widths)
        except (BundleError, GraphError):
            return None  # the job controller tells
        view = self._view(job, expansion, status)
        decision = step(view)
        starts = expansion.spec.savepoint is not None and not status.restored
        restored = starts and not self._to_begin(key, expansion.topology)
        await report(
            self._context.write.jobs,
            key,
            decision.states if asked else [decision.ready],
            generation,
            about=None if asked or version is None else version.generation,
            yields=True,
            submitted_generation=(
                generation if asked and decision.submitted else status.submitted_generation
            ),
            pe_count=decision.pe_count,
            ready_pe_count=decision.ready_pe_count,
            restored=status.restored or restored,
        )
        left = view.timeout_seconds - view.waiting_seconds
        if view.missing and left > 0:
            return left + 0.1
        return RESTORING_SECONDS if starts and not restored else None

    async def _tell_unreadable(self, job: Object, region: Object) -> None:
        name, why = region["metadata"]["name"], obstacle(region_spec, region)
        message = f"ParallelRegion {name} can't be read: {why}; correct its spec"
        state = State(READY, "False", "RegionUnreadable", message)
        await tell(self._context.write.jobs, job, state)

    def _view(self, job: Object, expansion: Expansion, status: JobStatus) -> JobView:
        namespace, name = key_of(job)
        caches, topology = self._caches, expansion.topology
        due = self._due(key_of(job), topology)
        wanted = [
            *(("ParallelRegion", region.name, caches.regions) for region in topology.regions),
            *(("ConfigMap", pe, caches.config_maps) for pe in due),
            *(("Service", pe, caches.services) for pe in due),
            *(("ProcessingElement", pe, caches.processing_elements) for pe in due),
            ("ConfigMap", names.job_config_map(name), caches.config_maps),
        ]
        missing = (
            f"{kind} {item}" for kind, item, cache in wanted if not cache.get((namespace, item))
        )
        return JobView(
            wanted_pes=len(topology.pes),
            missing=tuple(missing),
            not_ready=self._not_ready(namespace, expansion),
            submitted=_was_submitted(status, job["metadata"]["generation"]),
            waiting_seconds=_waiting_seconds(status),
            timeout_seconds=job_spec(job).submission_timeout_seconds,
        )

    def _due(self, key: Key, topology: Topology) -> list[str]:
        """Return the PEs that should exist by now.

        A channel that a width change is still to bring is not waited for: the change may itself
        wait for PEs, which are launched only once the job is submitted.
        """
        assigned = {
            region_spec(item).region: assigned_width(region_status(item).assignment)
            for item in self._caches.regions_by_job.get(key)
        }
        return [
            pe.name
            for pe in topology.pes
            if pe.channel is None or pe.channel < (assigned.get(pe.region or "") or math.inf)
        ]

    def _to_begin(self, key: Key, topology: Topology) -> set[tuple[str, int]]:
        """Return the shards of which no PE has said yet that it runs them, by stage."""
        left = {
            (pe.stage_name, shard)
            for pe in topology.stages
            for shard in range(pe.metadata.shard_count)
        }
        for item in self._caches.processing_elements_by_job.get(key):
            runtime = pe_status(item).runtime
            now = content_of(item) or ""
            # What a pod says of another place in the graph is not about this stage.
            if runtime and Content.parse(runtime.content_id).place == Content.parse(now).place:
                running = (n for n, said in runtime.shards.items() if said.state == "Running")
                left -= {(pe_spec(item).stage_name, int(shard)) for shard in running}
        return left

    def _not_ready(self, namespace: str, expansion: Expansion) -> dict[str, str]:
        result = {}
        for pe in expansion.topology.pes:
            item = self._caches.processing_elements.get((namespace, pe.name))
            status = pe_status(item) if item else ProcessingElementStatus()
            if status.phase != "Running" or status.message:  # of one that runs: what fails in it
                result[pe.name] = status.message
            elif status.runtime and status.runtime.content_id not in (
                "",
                str(expansion.contents[pe.pe_id]),
            ):
                # Perhaps nobody has told it yet of this one.
                result[pe.name] = "it runs the plan of before"
        return result


def _width_due(region: Object, now: float) -> int:
    """Return the width that a region should have by now: not one that was rolled back just before.

    The region says why it has another one than it wants, and when the next attempt is.
    """
    wanted = region_spec(region).width
    status = region_status(region)
    return status.width if avoided(status, wanted, now) else wanted


def _was_submitted(status: JobStatus, generation: int) -> bool:
    condition = find(status.conditions, SUBMITTED)
    if condition is None or condition.status != "True":
        return False
    return condition.observed_generation == generation


def _waiting_seconds(status: JobStatus) -> float:
    """Return how long the present submission has been going on."""
    submitted = find(status.conditions, SUBMITTED)
    if submitted and submitted.status == "True":
        return 0.0
    began = submitted or find(status.conditions, ACCEPTED)
    if began is None or began.last_transition_time is None:
        return 0.0
    return time.time() - from_rfc3339(began.last_transition_time)
