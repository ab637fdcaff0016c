"""Pods that run already though no watch has shown them yet."""

from collections.abc import Collection

from streamgraft_common import names
from streamgraft_common.kinds import POD
from streamgraft_common.kube import KubeClient
from streamgraft_operator.pe.pods import pod_view


async def unseen_pods(
    client: KubeClient, namespace: str, selector: str, seen: Collection[str]
) -> bool:
    """Return whether a pod that matches may run, and is of a PE that has none by the caches.

    `seen`: the PEs that have one. A pod that starts from now on reads what its PE's spec says now.
    One that the watch has not shown yet may have read what the spec said before, and its PE may
    have been deleted since; so only the API server knows.
    """
    pods = await client.list(POD.path(namespace), {"labelSelector": selector})
    return any(
        pod_view(pod).alive and pod["metadata"]["labels"].get(names.LABEL_PE) not in seen
        for pod in pods["items"]
    )
