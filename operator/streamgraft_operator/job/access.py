"""What lets the pods of a namespace's jobs reach the API: made where it is missing."""

import time

from streamgraft_common import names
from streamgraft_common.kinds import ROLE_BINDING, SERVICE_ACCOUNT, Kind
from streamgraft_common.kube import Conflict, Forbidden, KubeClient
from streamgraft_common.kube.client import Object
from streamgraft_operator import manifests

FRESH_SECONDS = 50.0
"""What was there is made again after this time, should it be gone: with every resync."""


class AccountRefused(Exception):
    """The account of PEs can't be seen or made; the message says what to do."""

    reason = "AccountRefused"


class AccessKeeper:
    """Sees to it that the account of PEs exists, and that it is bound to its role."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._seen: dict[str, float] = {}

    async def ensure(self, namespace: str) -> None:
        """Create what is missing in a namespace. Raises AccountRefused."""
        at = self._seen.get(namespace)
        if at is not None and time.monotonic() < at + FRESH_SECONDS:
            return
        for kind, manifest in (
            (SERVICE_ACCOUNT, manifests.service_account(namespace)),
            (ROLE_BINDING, manifests.role_binding(namespace)),
        ):
            try:
                await self._create_missing(kind, namespace, manifest)
            except Forbidden as refusal:
                name = names.SERVICE_ACCOUNT_PE
                raise AccountRefused(
                    f"the pods need the {kind.kind} {name} in namespace {namespace}, which the"
                    f" operator can't make: {refusal.message}; give it room or the right to, or"
                    f" make the account and bind it to the ClusterRole {name}"
                ) from refusal
        self._seen[namespace] = time.monotonic()

    async def _create_missing(self, kind: Kind, namespace: str, manifest: Object) -> None:
        # To create what is there is no way to look: a quota counts it before it is refused, or
        # forbids it.
        path = kind.path(namespace, names.SERVICE_ACCOUNT_PE)
        if await self._client.find(path) is not None:
            return
        try:
            await self._client.create(kind.path(namespace), manifest)
        except Conflict as conflict:
            if conflict.reason != "AlreadyExists":
                raise

    def forget(self, namespace: str) -> None:
        """Look again with the next job: where one has gone, its namespace may have gone, too."""
        self._seen.pop(namespace, None)
