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
from streamgraft_operator.pe.step import PodView, WarmPodView
from streamgraft_operator.pe.view import PeView


def pod_view(pod: Object) -> PodView:
    """Return what conductors see of a pod."""
    metadata = pod["metadata"]
    annotations = metadata.get("annotations", {})
    launch = metadata["labels"].get(names.LABEL_LAUNCH, "")
    return PodView(
        name=metadata["name"],
        launch=int(launch) if launch.isdecimal() else 0,
        pe_uid=annotations.get(ANNOTATION_PE_UID, ""),
        phase=pod.get("status", {}).get("phase", "Pending"),
        scheduled=bool(pod["spec"].get("nodeName")),
        deleting="deletionTimestamp" in metadata,
        content_id=annotations.get(names.ANNOTATION_CONTENT, ""),
        settings_id=annotations.get(ANNOTATION_SETTINGS, ""),
        uid=metadata["uid"],
    )


def warm_pod_view(pod: Object) -> WarmPodView:
    """Return what conductors see of a pod of a warm pool."""
    metadata = pod["metadata"]
    phase = pod.get("status", {}).get("phase", "Pending")
    return WarmPodView(
        name=metadata["name"],
        driver=metadata.get("annotations", {}).get(names.ANNOTATION_CONTENT, ""),
        ready=is_ready(pod),
        usable=phase in ("Pending", "Running") and "deletionTimestamp" not in metadata,
        running=phase == "Running",
    )


def ended_seconds(pod: Object, now: float) -> float | None:
    """Return how long ago a pod ended by itself, None if it did not; `now` in Unix seconds."""
    status = pod.get("status", {})
    if status.get("phase") not in ("Succeeded", "Failed") or (
        "deletionTimestamp" in pod["metadata"]
    ):
        return None
    ends = [
        from_rfc3339(container["state"]["terminated"]["finishedAt"])
        for container in status.get("containerStatuses", [])
        if container.get("state", {}).get("terminated", {}).get("finishedAt")
    ]
    began = from_rfc3339(pod["metadata"]["creationTimestamp"])
    return now - max(ends, default=began)


def is_deleted_by_force(pod: Mapping[str, Any]) -> bool:
    """Return whether nobody waits for a pod's process to end, which may have ended long ago."""
    return bool(pod["metadata"].get("deletionGracePeriodSeconds") == 0)


def why_not_running(pod: Object) -> str:
    """Return the reason that the cluster gives for a pod that does not run (yet), or ''."""
    status = pod.get("status", {})
    for container in status.get("containerStatuses", []):
        state = container.get("state", {})
        if ended := state.get("terminated"):
            text = ended.get("message", "").strip() or ended.get("reason", "")
            return f"exit code {ended.get('exitCode')}" + (f": {text}" if text else "")
        if waiting := state.get("waiting"):
            return ": ".join(filter(None, (waiting.get("reason"), waiting.get("message"))))
    if status.get("reason") or status.get("message"):
        return ": ".join(filter(None, (status.get("reason"), status.get("message"))))
    for condition in status.get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] != "True":
            return str(condition.get("message") or condition.get("reason", ""))
    return ""


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
    earlier = any(pod.alive and pod.pe_uid != item["metadata"]["uid"] for pod in pods)
    return PeView.of(pe_spec(item), status, frozenset(running), orphaned=earlier)
