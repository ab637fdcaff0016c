"""What is seen of the pods of tests, made from the objects as the API server has them."""

from streamgraft_common.kube.client import Object
from streamgraft_common.timestamps import from_rfc3339
from streamgraft_operator.manifests.suite_pod import CONTAINER
from streamgraft_operator.pe.pods import endings, phase_of, why_not_running
from streamgraft_operator.test_suite.step import ENDED, ScenarioPod


def scenario_pod(pod: Object) -> ScenarioPod:
    """Return what a step sees of the pod of a test."""
    metadata, status = pod["metadata"], pod.get("status", {})
    phase = phase_of(pod, CONTAINER)
    exit = endings(pod).get(CONTAINER)
    finished = exit.get("finishedAt") if exit else None
    killed = metadata.get("deletionTimestamp")
    return ScenarioPod(
        name=metadata["name"],
        uid=metadata["uid"],
        phase=phase,
        created=from_rfc3339(metadata["creationTimestamp"]),
        ended=from_rfc3339(finished) if finished and phase in ENDED else None,
        deleted=_deleted(metadata),
        killed=from_rfc3339(killed) if killed else None,
        exited=exit is not None and not status.get("reason"),
        message=why_not_running(pod, CONTAINER, lines=1),  # a log ends with what was wrong
    )


def _deleted(metadata: Object) -> float | None:
    """Return when the deletion began: `deletionTimestamp` is when its grace period ends."""
    if (ends := metadata.get("deletionTimestamp")) is None:
        return None
    return from_rfc3339(ends) - (metadata.get("deletionGracePeriodSeconds") or 0)
