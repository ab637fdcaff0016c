"""What is seen of PEs through their pods, made from the objects in the caches."""

from collections.abc import Mapping
from typing import Any

from streamgraft_common import names
from streamgraft_common.conditions import is_ready
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import key_of
from streamgraft_common.timestamps import from_rfc3339
from streamgraft_operator.kit.caches import Caches
from streamgraft_operator.kit.parsed import pe_spec, pe_status
from streamgraft_operator.manifests.pod import ANNOTATION_PE_UID, ANNOTATION_SETTINGS
from streamgraft_operator.pe.step import PodPhase, PodView, WarmPodView
from streamgraft_operator.pe.view import PeView

LAST_LINES = 3
"""Of what a container wrote when it failed: with the exception, and where it was raised."""
LONGEST_TEXT = 400
_NO_ROOM = ("Insufficient ", "Too many pods")
"""Words of the scheduler for nodes that are full."""
_COMMON = ("Error", "Completed", "PodInitializing")
"""Reasons that say no more than that a container has ended, or waits for others to."""


def endings(pod: Object) -> dict[str, Object]:
    """Return how those of a pod's containers ended that have, by their names."""
    states = _states(pod, "containerStatuses").items()
    return {name: state["terminated"] for name, state in states if "terminated" in state}


def phase_of(pod: Object, container: str = names.PE_CONTAINER) -> PodPhase:
    """Return the phase of a pod as far as one container goes.

    Sidecars keep a pod Running whose work is over, since nothing is started in it again. What the
    cluster has ended, as it does to evict a pod, has failed however its containers took it.
    """
    status = pod.get("status", {})
    phase: PodPhase = status.get("phase", "Pending")
    ended = endings(pod).get(container)
    if ended is None or (phase == "Failed" and status.get("reason")):
        return phase
    return "Failed" if ended.get("exitCode") else "Succeeded"


def pod_view(pod: Object) -> PodView:
    """Return what conductors see of a pod."""
    metadata = pod["metadata"]
    annotations = metadata.get("annotations", {})
    launch = metadata["labels"].get(names.LABEL_LAUNCH, "")
    return PodView(
        name=metadata["name"],
        launch=int(launch) if launch.isdecimal() else 0,
        pe_uid=annotations.get(ANNOTATION_PE_UID, ""),
        phase=phase_of(pod),
        scheduled=bool(pod["spec"].get("nodeName")),
        deleting="deletionTimestamp" in metadata,
        content_id=annotations.get(names.ANNOTATION_CONTENT, ""),
        settings_id=annotations.get(ANNOTATION_SETTINGS, ""),
        uid=metadata["uid"],
    )


def warm_pod_view(pod: Object) -> WarmPodView:
    """Return what conductors see of a pod of a warm pool."""
    metadata = pod["metadata"]
    phase = phase_of(pod)
    return WarmPodView(
        name=metadata["name"],
        driver=metadata.get("annotations", {}).get(names.ANNOTATION_CONTENT, ""),
        ready=is_ready(pod),
        usable=phase in ("Pending", "Running") and "deletionTimestamp" not in metadata,
        running=phase == "Running",
        node=pod["spec"].get("nodeName", ""),
    )


def ended_seconds(pod: Object, now: float) -> float | None:
    """Return how long ago a pod ended by itself, None if it did not; `now` in Unix seconds."""
    if phase_of(pod) not in ("Succeeded", "Failed") or "deletionTimestamp" in pod["metadata"]:
        return None
    ends = [
        from_rfc3339(ended["finishedAt"])
        for ended in endings(pod).values()
        if ended.get("finishedAt")
    ]
    began = from_rfc3339(pod["metadata"]["creationTimestamp"])
    return now - max(ends, default=began)


def is_deleted_by_force(pod: Mapping[str, Any]) -> bool:
    """Return whether nobody waits for a pod's process to end, which may have ended long ago."""
    return bool(pod["metadata"].get("deletionGracePeriodSeconds") == 0)


def why_not_running(
    pod: Object, container: str = names.PE_CONTAINER, lines: int = LAST_LINES
) -> str:
    """Return the reason that the cluster gives for a pod that does not run (yet), or ''.

    `container`: the one that counts; `lines`: how many of its last are shown, if it has ended.
    """
    status = pod.get("status", {})
    if status.get("reason") or status.get("message"):
        return _joined(status.get("reason"), status.get("message"))
    states = _states(pod, "containerStatuses")
    own = states.pop(container, {})
    # Once it has ended, so have init containers that are sidecars: as they are told to.
    if "terminated" in own:
        return _ending(own["terminated"], lines)
    for name, state in _states(pod, "initContainerStatuses").items():
        if why := _hindrance(state, lines):
            return f"init container {name}: {why}"
    if "waiting" in own:
        return _joined(own["waiting"].get("reason"), own["waiting"].get("message"))
    for name, state in states.items():
        if why := _hindrance(state, lines):
            return f"container {name}: {why}"
    for condition in status.get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] != "True":
            return str(condition.get("message") or condition.get("reason", ""))
    return ""


def _states(pod: Object, field: str) -> dict[str, Object]:
    """Return the states of a pod's containers of one kind, by their names."""
    containers = pod.get("status", {}).get(field, [])
    return {container.get("name", ""): container.get("state", {}) for container in containers}


def _hindrance(state: Object, lines: int) -> str:
    """Return why a container keeps its pod from running, or ''."""
    waiting, ended = state.get("waiting", {}), state.get("terminated", {})
    if ended.get("exitCode"):
        return _ending(ended, lines)
    reason = waiting.get("reason")
    return "" if reason in _COMMON else _joined(reason, waiting.get("message"))


def _ending(ended: Object, lines: int) -> str:
    """Return how a container has ended: what it wrote last, and before that why, if that says
    more."""
    reason = ended.get("reason", "")
    written = [line.strip() for line in ended.get("message", "").splitlines() if line.strip()]
    text = " | ".join(written[-lines:])
    text = text if len(text) <= LONGEST_TEXT else f"...{text[-LONGEST_TEXT:]}"
    why = "" if reason in _COMMON and text else reason
    return _joined(f"exit code {ended.get('exitCode')}", why, text)


def _joined(*parts: str | None) -> str:
    return ": ".join(filter(None, parts))


def lacks_room(pod: Object) -> bool:
    """Return whether the scheduler finds no node with enough left for the pod of a PE.

    It waits for other things, too, such as a node that it asks for by name: room is no help then.
    A pod that has a node has its room, whatever the scheduler wrote late.
    """
    if names.LABEL_PE not in pod["metadata"]["labels"] or "deletionTimestamp" in pod["metadata"]:
        return False
    if pod["spec"].get("nodeName"):
        return False
    return any(
        condition["type"] == "PodScheduled"
        and condition["status"] == "False"
        and any(word in condition.get("message", "") for word in _NO_ROOM)
        for condition in pod.get("status", {}).get("conditions", [])
    )


def ran_seconds(pod: Object, now: float) -> float:
    """Return how long a pod was up; `now` in Unix seconds."""
    started = pod.get("status", {}).get("startTime")
    return now - from_rfc3339(started) if started else 0.0


def pe_view(caches: Caches, item: Object) -> PeView:
    """Return what is known of an existing PE and its pods."""
    pods = [pod_view(pod) for pod in caches.pods_by_pe.get(key_of(item))]
    status = pe_status(item)
    reporter = status.runtime.pod_uid if status.runtime else ""  # runs, if the cache lags
    running = (pod.uid for pod in pods if pod.alive or (pod.uid == reporter and not pod.ended))
    metadata = item["metadata"]
    earlier = any(pod.alive and pod.pe_uid != metadata["uid"] for pod in pods)
    created = from_rfc3339(metadata["creationTimestamp"])
    spec = pe_spec(item)
    return PeView.of(spec, status, frozenset(running), orphaned=earlier, created_at=created)
