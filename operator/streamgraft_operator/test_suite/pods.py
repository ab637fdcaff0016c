"""What is seen of the pods of tests, made from the objects as the API server has them."""

from typing import Any

from streamgraft_common.kube.client import Object
from streamgraft_common.timestamps import from_rfc3339
from streamgraft_operator.pe.pods import why_not_running
from streamgraft_operator.test_suite.step import ENDED, ScenarioPod


def scenario_pod(pod: Object) -> ScenarioPod:
    """Return what a step sees of the pod of a test."""
    metadata, status = pod["metadata"], pod.get("status", {})
    phase = status.get("phase", "Pending")
    exits = _exits(status)
    finished = [from_rfc3339(exit["finishedAt"]) for exit in exits if exit.get("finishedAt")]
    return ScenarioPod(
        name=metadata["name"],
        uid=metadata["uid"],
        phase=phase,
        created=from_rfc3339(metadata["creationTimestamp"]),
        ended=max(finished, default=None) if phase in ENDED else None,
        deleted=_deleted(metadata),
        exited=bool(exits) and not status.get("reason"),
        message=_last_line(why_not_running(pod)),
    )


def _exits(status: Object) -> list[dict[str, Any]]:
    """Return how the containers that have ended did so."""
    return [
        ended
        for container in status.get("containerStatuses", [])
        if (ended := container.get("state", {}).get("terminated"))
    ]


def _deleted(metadata: Object) -> float | None:
    """Return when the deletion began: `deletionTimestamp` is when its grace period ends."""
    if (ends := metadata.get("deletionTimestamp")) is None:
        return None
    return from_rfc3339(ends) - (metadata.get("deletionGracePeriodSeconds") or 0)


def _last_line(text: str) -> str:
    """Return the last line that says something: a test's log ends with what was wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
