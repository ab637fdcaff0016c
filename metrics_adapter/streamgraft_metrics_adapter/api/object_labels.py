"""Labels of the objects that metrics describe, so that label selectors are answered from memory."""

import asyncio
from collections.abc import Callable

from streamgraft_common.kinds import Kind
from streamgraft_common.kube import KubeClient, Store
from streamgraft_metrics_adapter.selectors import Selector
from streamgraft_metrics_adapter.status import UnavailableError
from streamgraft_metrics_adapter.supervision import kept_running

_SECONDS = 5.0
"""Between two looks at which kinds are wanted."""


class ObjectLabels:
    """Keeps the metadata of all objects of the kinds that are wanted."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._stores: dict[Kind, tuple[Store, asyncio.Task[None]]] = {}

    async def run(self, wanted: Callable[[], set[Kind]]) -> None:
        """Watch the kinds that are wanted, which may change, until cancelled."""
        try:
            while True:
                self._want(wanted())
                await asyncio.sleep(_SECONDS)
        finally:
            self._want(set())

    def _want(self, wanted: set[Kind]) -> None:
        for resource in self._stores.keys() - wanted:
            self._stores.pop(resource)[1].cancel()
        for resource in wanted - self._stores.keys():
            store = Store(self._client, resource.path(), metadata_only=True)
            self._stores[resource] = store, asyncio.create_task(kept_running(store.run))

    def names(self, resource: Kind, namespace: str, selector: Selector) -> list[str]:
        """Return the names of the objects in a namespace ("": without one) that match.

        Raises UnavailableError while they are not listed.
        """
        known = self._stores.get(resource)
        if known is None or not known[0].synced.is_set():
            raise UnavailableError(
                f"{resource.qualified} are not listed yet: if this lasts, the adapter may not list"
                " and watch them"
            )
        found = (item["metadata"] for item in known[0].items())
        return sorted(
            metadata["name"]
            for metadata in found
            if metadata.get("namespace", "") == namespace
            and selector.matches(metadata.get("labels") or {})
        )
