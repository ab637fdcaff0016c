"""Writes the width of a region as the caller, not as the adapter.

So the API server itself authorizes and admits the write, and its audit log names who wrote. The
adapter's own account may not write, and may not impersonate anybody.
"""

from urllib.parse import quote

from streamgraft_common.kube import KubeClient, Unreachable
from streamgraft_common.kube.config import KubeConfig
from streamgraft_common.resources import PARALLEL_REGION
from streamgraft_metrics_adapter.api.routes.answers import ScaleAnswer
from streamgraft_metrics_adapter.status import ForbiddenError, UnavailableError


async def written(
    cluster: KubeConfig, token: str | None, namespace: str, name: str, width: int
) -> ScaleAnswer:
    """Set the wanted width by PUT to /scale, for which the API server asks for the verb `update`.

    Raises ForbiddenError without a token, ApiError as the API server says, UnavailableError.
    """
    if token is None:
        raise ForbiddenError(
            "the width is written in the name of the caller, and a client certificate can't be"
            " passed on: send a bearer token, or use kubectl scale"
        )
    path = f"{PARALLEL_REGION.path(quote(namespace, safe=''), quote(name, safe=''))}/scale"
    body = {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"replicas": width},
    }
    try:
        # A connection of its own: one of the adapter's proves the adapter's identity.
        async with KubeClient(cluster.of_bearer(token)) as caller:
            found = await caller.replace(path, body)
    except Unreachable as error:
        raise UnavailableError(str(error)) from error
    return ScaleAnswer(
        width=found["spec"].get("replicas", 0), serving=found.get("status", {}).get("replicas", 0)
    )
