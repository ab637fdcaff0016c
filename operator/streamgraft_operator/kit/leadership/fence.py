"""A client that writes only while its replica leads."""

from collections.abc import Callable, Mapping
from typing import Any

from streamgraft_common.kube import KubeClient, KubeConfig, Unreachable
from streamgraft_common.kube.client import Object


class NotLeading(Unreachable):
    """The lease is not ours (any more): nothing was sent."""


class FencedClient(KubeClient):
    """Refuses writes once `leading` says no.

    Cancelling what runs is not enough: a process that was frozen goes on in the middle of a
    reconcile before any timer fires. A write that is already under way is caught by the version
    that it names, or by its name, which is the same for all replicas.
    """

    def __init__(self, config: KubeConfig, leading: Callable[[], bool]) -> None:
        super().__init__(config)
        self.leading = leading

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
        **headers: str,
    ) -> Object:
        """Send one request. Raises NotLeading for a write without the lease."""
        if method != "GET" and not self.leading():
            raise NotLeading(f"{method} {path} not sent: this replica does not lead")
        return await super().request(method, path, body=body, query=query, **headers)


def may_write(client: KubeClient) -> bool:
    """Return whether whoever has this client may write, in whatever system: without a lease to
    lose, always."""
    return client.leading() if isinstance(client, FencedClient) else True
