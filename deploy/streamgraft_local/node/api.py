"""What the node writes to the API server about its pods."""

import logging

from streamgraft_common.kube import ApiError, KubeClient, Unreachable
from streamgraft_common.kube.client import Object
from streamgraft_local.node.states import now

log = logging.getLogger(__name__)

_STRATEGIC = "application/strategic-merge-patch+json"


def pod_path(pod: Object) -> str:
    """Return the path of a pod."""
    metadata = pod["metadata"]
    return f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"


async def patch_status(client: KubeClient, path: str, uid: str | None, status: Object) -> Object:
    """Merge into a status by strategic merge: conditions of others stay (merged by type).

    With a uid, an object of the same name that is another one is left alone (Conflict).
    """
    body = {"metadata": {"uid": uid} if uid else {}, "status": status}
    return await client.request("PATCH", f"{path}/status", body=body, content_type=_STRATEGIC)


async def delete_pod(client: KubeClient, pod: Object) -> None:
    """Remove a pod that has ended from the API, at once. Raises NotFound if it is gone."""
    body = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}}
    await client.request("DELETE", pod_path(pod), body=body)


async def post_event(
    client: KubeClient, node: str, pod: Object, kind: str, reason: str, message: str
) -> None:
    """Create an Event about a pod; events are best effort."""
    metadata = pod["metadata"]
    at = now()
    event = {
        "metadata": {"generateName": f"{metadata['name'][:200]}."},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            **{key: metadata[key] for key in ("namespace", "name", "uid")},
        },
        "type": kind,
        "reason": reason,
        "message": message[:1000],
        "source": {"component": "process-node", "host": node},
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }
    try:
        await client.create(f"/api/v1/namespaces/{metadata['namespace']}/events", event)
    except (ApiError, Unreachable) as error:
        log.debug("event %s of %s not recorded: %s", reason, metadata["name"], error)
