"""Whether what runs of a job can become what is asked for, and what is dropped on the way."""

from collections.abc import Collection

from streamgraft_common import names
from streamgraft_common.edits import EditRefused, check, dropped
from streamgraft_common.kinds import CONFIG_MAP
from streamgraft_common.kube import Conflict
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import key_of
from streamgraft_common.resources import SavedStage
from streamgraft_operator import manifests
from streamgraft_operator.application.expansion import Expansion
from streamgraft_operator.context import Context, owner_of
from streamgraft_operator.graph import GraphError
from streamgraft_operator.job.commands import report
from streamgraft_operator.kit.objects import content_of, is_owned_by
from streamgraft_operator.kit.parsed import job_status, pe_status
from streamgraft_operator.pe.volumes import check_same_volume


class EditChecker:
    """Compares edits with all that may run: the graph that was planted last, as the job's own
    ConfigMap has it, and the version that was accepted since, of which a part may be planted."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def check(self, job: Object, expansion: Expansion) -> set[str]:
        """Return the stages and regions that this graph drops. Raises GraphError if what runs can't
        become it without losing state."""
        stages, status = expansion.stages, job_status(job)
        spec, version = expansion.spec, await self.before(job, expansion)
        planted = await self._planted(job, expansion)
        found = dropped(planted, stages) if planted else set()
        accepted = await self._context.versions.accepted(job)
        if accepted is not None and accepted.id == expansion.version.id:
            return found  # it was judged, and a part of it may be there
        made = status.made_in_kafka.written if status.made_in_kafka else frozenset[str]()
        try:
            if version is not None:
                running = version.stages
                check(running, stages, spec.drop_state, spec.changed_streams, made)
                found |= dropped(running, stages)
            if planted:
                # What was made since is of that version.
                since = () if version is not None else made
                check(planted, stages, spec.drop_state, spec.changed_streams, since)
        except EditRefused as error:
            raise GraphError(str(error)) from error
        return found

    async def note(self, job: Object, expansion: Expansion, gone: Collection[str]) -> None:
        """Count what a version drops, before anything is made of it: what comes back must not meet
        what was there. Who is cut off in between counts it once more, which does no harm.

        What may send records again is noted, too, for the versions after it.
        """
        status, mark = job_status(job), expansion.content_id if gone else ""
        repeating = sorted(expansion.topology.repeating)
        if status.dropped_for == mark and status.repeating == repeating:
            return
        counts = dict(status.dropped_stages)
        counts |= {name: counts.get(name, 0) + 1 for name in sorted(gone)}
        noted = await report(
            self._context.write.jobs,
            key_of(job),
            [],
            job["metadata"]["generation"],
            dropped_stages=counts,
            dropped_for=mark,
            repeating=repeating,
        )
        if noted is None:
            raise Conflict(409, "Conflict", f"job {job['metadata']['name']} is gone")

    async def _planted(self, job: Object, expansion: Expansion) -> list[SavedStage]:
        """Return the stages of the graph that was planted last, if that is another one."""
        caches, (namespace, job_name) = self._context.caches, key_of(job)
        name = names.job_config_map(job_name)
        if content_of(caches.config_maps.get((namespace, name))) == expansion.content_id:
            return []
        own = await self._context.client.find(CONFIG_MAP.path(namespace, name))
        if own is None or not is_owned_by(own, owner_of(job).uid):
            return []  # nothing was planted, or somebody has deleted it
        pes = caches.processing_elements_by_job.get(key_of(job))
        if any(pe_status(pe).runtime for pe in pes):
            check_same_volume(manifests.checkpoints_of(own), expansion.checkpoints)
        return manifests.stages_of(own)

    async def before(self, job: Object, expansion: Expansion) -> Expansion | None:
        """Return the version that was accepted last, if the job runs another one than this."""
        accepted = await self._context.versions.accepted(job)
        if accepted is None or not job_status(job).submitted_generation:
            return None
        if accepted.id == expansion.version.id:
            return None
        try:
            return await self._context.expander.expand(job, {})
        except GraphError:
            return None  # as by an earlier release: then nothing of it is planted by this one
