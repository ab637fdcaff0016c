"""Whether this process still is of a Pod: a lost node's go on when their Pod is long deleted.

Another pod may have the name by then, so the uid says which Pod is ours.
"""

import asyncio

from streamgraft_common.kube import KubeClient, Store


def own_pod(client: KubeClient, namespace: str, name: str) -> Store:
    """Return a store of the Pod of our name, to be run."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    return Store(client, path, metadata_only=True, fieldSelector=f"metadata.name={name}")


async def gone(pods: Store, uid: str) -> None:
    """Wait until our Pod is gone. `pods` runs; while the API server is away nothing is gone."""
    changed = asyncio.Event()
    pods.listen(lambda *_: changed.set())
    await pods.synced.wait()
    while any(item["metadata"]["uid"] == uid for item in pods.items()):
        changed.clear()
        await changed.wait()
