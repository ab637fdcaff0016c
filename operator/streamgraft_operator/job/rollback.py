"""A first submission that did not come to its end in time: back to a clean slate, then again.

Everything that was made goes, in the foreground (each object after what depends on it), so that
the next attempt meets nothing half deleted. A job that was submitted once is never rolled back: it
has state to lose. All of this is in the job's status, so any operator can go on with it.
"""

from streamgraft_common import names
from streamgraft_common.conditions import find
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import key_of
from streamgraft_common.resources import JobStatus
from streamgraft_operator import events
from streamgraft_operator.context import Context
from streamgraft_operator.job.commands import report
from streamgraft_operator.kit.conditions import ROLLING_BACK, SUBMITTED, TIMED_OUT, State
from streamgraft_operator.kit.parsed import job_status

LOOK_AGAIN_SECONDS = 1.0


class Rollback:
    """Rolls submissions back; safe to interrupt and repeat."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def carry_on(self, job: Object) -> bool:
        """Take the next step, if any is due; return whether more of them are to come."""
        status = job_status(job)
        submitted = find(status.conditions, SUBMITTED)
        if submitted is None or status.submitted_generation:
            return False
        if submitted.reason == TIMED_OUT:
            await self._begin(job, status)
            return True
        if submitted.reason != ROLLING_BACK:
            return False
        if await self._delete(job):
            return True
        again = State(SUBMITTED, "False", "Repeating", "the submission begins anew")
        await self._report(job, again, status.failed_submissions)
        return False

    async def _begin(self, job: Object, status: JobStatus) -> None:
        submitted = find(status.conditions, SUBMITTED)
        event = events.submission_rolled_back(submitted.message if submitted else "")
        self._context.recorder.record(job, event)
        state = State(SUBMITTED, "Unknown", ROLLING_BACK, event.message)
        await self._report(job, state, status.failed_submissions + 1)

    async def _delete(self, job: Object) -> bool:
        """Delete what the submission made; return whether any of it is still there."""
        namespace, name = key_of(job)
        caches, write = self._context.caches, self._context.write
        selector = f"{names.LABEL_JOB}={name},{names.LABEL_GENERATION}"  # not a user's bundle
        left = False
        for index, coordinator in (
            (caches.regions_by_job, write.regions),
            (caches.processing_elements_by_job, write.processing_elements),
            (caches.pods_by_job, write.pods),
            (caches.services_by_job, write.services),
            (caches.config_maps_by_job, write.config_maps),
        ):
            ours = [
                item
                for item in index.get((namespace, name))
                if names.LABEL_GENERATION in item["metadata"]["labels"]
            ]
            left = left or bool(ours)
            if any("deletionTimestamp" not in item["metadata"] for item in ours):
                await coordinator.delete_all(namespace, selector, propagation="Foreground")
        return left

    async def _report(self, job: Object, state: State, failed_submissions: int) -> None:
        await report(
            self._context.write.jobs,
            key_of(job),
            [state],
            job["metadata"]["generation"],
            failed_submissions=failed_submissions,
        )
