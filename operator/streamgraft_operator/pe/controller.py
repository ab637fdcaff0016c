"""The controller of ProcessingElements: first launch, and how its pod is doing."""

from collections.abc import Iterable, Sequence

from streamgraft_common.conditions import find, is_ready, is_true
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, key_of
from streamgraft_common.resources import ProcessingElementStatus, RuntimeStatus
from streamgraft_operator import events
from streamgraft_operator.context import Context
from streamgraft_operator.kit.conditions import POD_CREATED, QUERY_SHARED, SUBMITTED, State
from streamgraft_operator.kit.control_loop import Controller, Outcome, Watch, launch_changed
from streamgraft_operator.kit.objects import content_of, own_key, pe_key
from streamgraft_operator.kit.parsed import job_status, pe_status
from streamgraft_operator.pe import commands
from streamgraft_operator.pe.launches import Relaunch
from streamgraft_operator.pe.pods import pod_view, why_not_running
from streamgraft_operator.pe.step import launched


class ProcessingElementController(Controller):
    """A new PE gets launch count 1 once its job is submitted; its phase follows the pod.

    So no pod starts before all that it may need exists, and the submission does not have to share
    the API server with a thousand pods.
    """

    name = "processing-element"

    def __init__(self, context: Context) -> None:
        self._caches = context.caches
        self._write = context.write.processing_elements
        self._context = context

    @property
    def watches(self) -> Sequence[Watch]:
        """ProcessingElements, their pods, and jobs that become submitted."""
        return (
            Watch(self._caches.processing_elements, own_key, _report_changed),
            Watch(self._caches.pods, pe_key),
            Watch(self._caches.jobs, self._pes_of, _submission_changed),
        )

    async def reconcile(self, key: Key) -> Outcome:
        """Launch a new PE, or report how its pod is."""
        item = self._caches.processing_elements.get(key)
        job = self._context.living_job_of(item) if item else None
        if item is None or job is None:
            return None
        status = pe_status(item)
        if status.launch_count == 0:
            if not _is_submitted(job):
                return None
            await commands.launch(self._write, item, Relaunch("Created"), 0.0)
            return None
        pod = self._pod(key, item, status)
        name = pod["metadata"]["name"] if pod else None
        uid = pod["metadata"]["uid"] if pod else None
        runtime = status.runtime if status.runtime and status.runtime.pod_uid == uid else None
        phase, message = _phase(pod, runtime, content_of(item))
        if pod is None:
            message = refusal(status) or message
        lost, shared = lost_records(status), shared_query(status, runtime)
        states = (*lost, *failing_shards(status, runtime), *shared, *pod_created(status, pod))
        await commands.report(self._write, item, name, phase, message, states)
        told = [(state, events.records_lost) for state in lost]
        told += [(state, events.query_per_shard) for state in shared if state.status == "False"]
        for state, event in told:
            known = find(status.conditions, state.type)
            if known is None or known.message != state.message:
                self._context.recorder.record(item, event(state.message))
        return None

    def _pes_of(self, job: Object) -> Iterable[Key]:
        return map(key_of, self._caches.processing_elements_by_job.get(key_of(job)))

    def _pod(self, key: Key, item: Object, status: ProcessingElementStatus) -> Object | None:
        pods = {pod["metadata"]["name"]: pod for pod in self._caches.pods_by_pe.get(key)}
        views = map(pod_view, pods.values())
        view = launched(views, item["metadata"]["uid"], status.launch_count, status.pod)
        return pods[view.name] if view else None


def _is_submitted(job: Object) -> bool:
    status = job_status(job)
    return is_true(status.conditions, SUBMITTED)


def _submission_changed(old: Object | None, new: Object | None) -> bool:
    return new is not None and _is_submitted(new) and not (old and _is_submitted(old))


def _report_changed(old: Object | None, new: Object | None) -> bool:
    """Return whether a PE's launch changed, why it gets no pod, or what its pod says beside how its
    shards are."""
    return launch_changed(old, new) or _report(old) != _report(new)


def _report(item: Object | None) -> tuple[object, ...]:
    runtime = ((item or {}).get("status") or {}).get("runtime") or {}
    shards = runtime.get("shards") or {}
    failures = {shard: said["message"] for shard, said in shards.items() if said.get("message")}
    said = (runtime.get(field) for field in ("podUid", "contentId", "message", "lost", "apart"))
    # As it is: this is asked of each load that is reported.
    conditions = ((item or {}).get("status") or {}).get("conditions") or []
    created = [said for said in conditions if said.get("type") == POD_CREATED]
    refused = [(said.get("status"), said.get("message")) for said in created]
    return (*said, failures, refused)


def lost_records(status: ProcessingElementStatus) -> tuple[State, ...]:
    """Report what retention deleted before it was read; nothing if it never did."""
    lost = status.runtime.lost if status.runtime else None
    if lost is None or not lost.topics:
        return ()
    listed = ", ".join(f"{count} of {topic}" for topic, count in sorted(lost.topics.items()))
    message = (
        f"records were deleted by retention before they were read: {listed}; noticed last at"
        f" {lost.last_at}. Keep records for longer than the longest outage"
    )
    return (State("RecordsLost", "True", "Retention", message),)


def failing_shards(
    status: ProcessingElementStatus, runtime: RuntimeStatus | None
) -> tuple[State, ...]:
    """Tell whether queries of shards fail; nothing if none ever did, or no pod says so."""
    if runtime is None:
        return ()
    shards = sorted(runtime.shards.items(), key=lambda item: int(item[0]))
    if reasons := [said.reason for _, said in shards if said.message]:
        return (State("ShardsRunning", "False", reasons[0] or "QueryFailed", runtime.failure),)
    if find(status.conditions, "ShardsRunning"):
        return (State("ShardsRunning", "True", "NoFailures"),)
    return ()


def shared_query(
    status: ProcessingElementStatus, runtime: RuntimeStatus | None
) -> tuple[State, ...]:
    """Tell whether a PE runs a query per shard though one for all was planned; nothing if none ever
    did, or no pod says so."""
    if runtime is None:
        return ()
    if runtime.apart:
        message = (
            f"a query per shard, where one for all of a channel's was planned: {runtime.apart}. No"
            " result differs, but each query pays for batches of its own. An edit that does"
            " without that has one again; for a join with a table F.broadcast may do"
        )
        return (State(QUERY_SHARED, "False", "PlanNotUnderstood", message),)
    if runtime.ready and find(status.conditions, QUERY_SHARED):
        return (State(QUERY_SHARED, "True", "AsPlanned"),)
    return ()


def refusal(status: ProcessingElementStatus) -> str:
    """Return why the API server lets no pod be created for a PE; "" if it does, as far as known."""
    found = find(status.conditions, POD_CREATED)
    return found.message if found and found.status == "False" else ""


def pod_created(status: ProcessingElementStatus, pod: Object | None) -> tuple[State, ...]:
    """Take a refusal back once there is a pod; nothing if none was ever refused."""
    if pod is None or not find(status.conditions, POD_CREATED):
        return ()
    return (State(POD_CREATED, "True", "Created"),)


def _phase(
    pod: Object | None, runtime: RuntimeStatus | None, content_id: str | None
) -> tuple[str, str]:
    if pod is None:
        return "Pending", "its pod does not exist yet"
    match pod_view(pod).phase:
        case "Failed":
            return "Failed", why_not_running(pod)
        case "Succeeded":
            return "Stopped", why_not_running(pod)
        case "Running" if runtime and is_ready(pod) and runtime.content_id in ("", content_id):
            return "Running", runtime.failure
        case "Running":
            message = runtime.message if runtime else ""
            return "Starting", message or "the pod is not ready for this PE yet"
        case _:
            return "Starting", why_not_running(pod) or "the pod is starting"
