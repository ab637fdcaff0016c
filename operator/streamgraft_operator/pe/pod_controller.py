"""The controller of pods: one that failed, ended or was deleted leads to the next launch.

It creates nothing: it asks for a higher launch count, and the pod conductor does the rest.
"""

import time
from collections.abc import Sequence

from streamgraft_common.content import Content
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, key_of
from streamgraft_common.resources import Stopped
from streamgraft_operator import events
from streamgraft_operator.context import Context
from streamgraft_operator.kit.control_loop import Controller, Outcome, Watch, launch_changed
from streamgraft_operator.kit.objects import content_of, own_key, pe_key
from streamgraft_operator.kit.parsed import pe_spec, pe_status
from streamgraft_operator.manifests.pod_settings import own_settings_id
from streamgraft_operator.pe import commands
from streamgraft_operator.pe.fencing import fence
from streamgraft_operator.pe.launches import Relaunch, RestartPolicy, not_before, relaunch, resumed
from streamgraft_operator.pe.metrics import FailureCounters
from streamgraft_operator.pe.pods import is_deleted_by_force, pod_view, ran_seconds, why_not_running


class PodController(Controller):
    """Keyed by PE, since a pod that is gone has no key any more."""

    name = "pod"

    def __init__(self, context: Context) -> None:
        self._context = context
        self._caches = context.caches
        self._failures = FailureCounters()

    @property
    def watches(self) -> Sequence[Watch]:
        """Pods, and PEs for what happened while nobody watched."""
        return (
            Watch(self._caches.pods, pe_key),
            Watch(self._caches.processing_elements, own_key, launch_changed),
        )

    async def reconcile(self, key: Key) -> Outcome:
        """Raise the launch count if the current launch is over."""
        item = self._caches.processing_elements.get(key)
        if item is None:
            self._failures.forget(key)
        if item is None or "deletionTimestamp" in item["metadata"]:
            return None
        job = await self._context.running_job_of(item)
        if job is None:
            return None
        self._failures.show(item)
        spec = pe_spec(item)
        status = pe_status(item)
        if status.launch_count == 0:
            return None  # the PE controller's
        policy, own = RestartPolicy.of(spec), own_settings_id(spec.settings)
        version = f"{content_of(item)}/{own}"
        if status.stopped:
            if cause := resumed(status.stopped, policy, version):
                await self._launch(item, cause, None)
            return None
        pods = self._caches.pods_by_pe.get(key)
        views = [pod_view(pod) for pod in pods]
        content = Content.parse(content_of(item) or "")
        cause = relaunch(status, content, views, item["metadata"]["uid"], own)
        if cause is None:
            return None
        pod = next((pod for pod in pods if pod["metadata"]["name"] == status.pod), None)
        if (
            pod is None
            and status.pod
            and await self._context.write.pods.exists((key[0], status.pod))
        ):
            return None  # the cache was behind; its news leads here again
        if pod is None or cause.failed or is_deleted_by_force(pod):
            await fence(self._context, job, item)
        if policy.allows(cause):
            await self._launch(item, cause, pod)
        else:
            await self._stop(item, cause, version, pod)
        return None

    async def _stop(self, seen: Object, cause: Relaunch, version: str, pod: Object | None) -> None:
        stopped = Stopped.model_validate({"reason": cause.reason, "version": version})
        event = events.pe_stopped(cause.reason, why_not_running(pod) if pod else "")
        write = self._context.write.processing_elements
        written = await commands.stop(write, seen, stopped, event.message)
        if written:
            self._count(written, cause)
            self._context.recorder.record(written, event)

    async def _launch(self, seen: Object, cause: Relaunch, pod: Object | None) -> None:
        now = time.time()
        up = ran_seconds(pod, now) if pod else 0.0
        if not await commands.launch(self._context.write.processing_elements, seen, cause, up):
            return
        self._count(seen, cause)
        item = self._caches.processing_elements.get(key_of(seen))
        if item is None:
            return
        count = pe_status(seen).launch_count + 1
        event = events.pe_launched(count, cause.reason)
        if cause.failed and pod:
            status = pe_status(item)
            delay = max(0.0, not_before(status, now) - now)
            name = pod["metadata"]["name"]
            why = why_not_running(pod) or cause.reason
            event = events.pe_failed(name, count, why, delay)
        self._context.recorder.record(item, event)

    def _count(self, item: Object, cause: Relaunch) -> None:
        if cause.failed and cause.reason == "PodFailed":
            self._failures.count(item)
