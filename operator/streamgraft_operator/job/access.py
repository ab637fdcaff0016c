"""What lets the pods of a namespace's jobs reach the API: made where it is missing."""

import time

from streamgraft_common.kinds import ROLE_BINDING, SERVICE_ACCOUNT
from streamgraft_common.kube import Conflict, KubeClient
from streamgraft_operator import manifests

FRESH_SECONDS = 50.0
"""What was there is made again after this time, should it be gone: with every resync."""


class AccessKeeper:
    """Sees to it that the account of PEs exists, and that it is bound to its role.

    The operator may only create both, so it looks by creating them.
    """

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._seen: dict[str, float] = {}

    async def ensure(self, namespace: str) -> None:
        """Create what is missing in a namespace."""
        at = self._seen.get(namespace)
        if at is not None and time.monotonic() < at + FRESH_SECONDS:
            return
        for kind, manifest in (
            (SERVICE_ACCOUNT, manifests.service_account(namespace)),
            (ROLE_BINDING, manifests.role_binding(namespace)),
        ):
            try:
                await self._client.create(kind.path(namespace), manifest)
            except Conflict as conflict:
                if conflict.reason != "AlreadyExists":
                    raise
        self._seen[namespace] = time.monotonic()

    def forget(self, namespace: str) -> None:
        """Look again with the next job: where one has gone, its namespace may have gone, too."""
        self._seen.pop(namespace, None)
