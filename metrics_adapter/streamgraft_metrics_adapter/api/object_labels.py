"""Labels of the objects that metrics describe, so that label selectors are answered from memory."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping

from streamgraft_common.kinds import Kind
from streamgraft_common.kube import KubeClient, Store
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key
from streamgraft_metrics_adapter.selectors import Selector
from streamgraft_metrics_adapter.status import UnavailableError
from streamgraft_metrics_adapter.supervision import kept_running

_SECONDS = 5.0
"""Between two looks at which kinds are wanted."""


class _Kept:
    """The labels of all objects of a kind, by namespace."""

    def __init__(self, client: KubeClient, kind: Kind) -> None:
        self.of: dict[str, dict[str, Mapping[str, str]]] = defaultdict(dict)
        self._store = Store(client, kind.path(), metadata_only=True, trim=_trimmed)
        self._store.listen(self._changed)
        self.task = asyncio.create_task(kept_running(self._store.run))

    @property
    def synced(self) -> bool:
        return self._store.synced.is_set()

    def _changed(self, key: Key, old: Object | None, new: Object | None) -> None:
        namespace, name = key
        if new is not None:
            self.of[namespace][name] = new["metadata"].get("labels") or {}
            return
        self.of[namespace].pop(name, None)
        if not self.of[namespace]:
            del self.of[namespace]


def _trimmed(item: Object) -> Object:
    metadata = item["metadata"]
    kept = ("name", "namespace", "resourceVersion", "labels")
    return {"metadata": {field: metadata[field] for field in kept if field in metadata}}


class ObjectLabels:
    """Keeps the labels of all objects of the kinds that are wanted."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._kinds: dict[Kind, _Kept] = {}

    async def run(self, wanted: Callable[[], set[Kind]]) -> None:
        """Watch the kinds that are wanted, which may change, until cancelled."""
        try:
            while True:
                self._want(wanted())
                await asyncio.sleep(_SECONDS)
        finally:
            self._want(set())

    def _want(self, wanted: set[Kind]) -> None:
        for kind in self._kinds.keys() - wanted:
            self._kinds.pop(kind).task.cancel()
        for kind in wanted - self._kinds.keys():
            self._kinds[kind] = _Kept(self._client, kind)

    def names(self, kind: Kind, namespace: str, selector: Selector) -> list[str]:
        """Return the names of the objects in a namespace ("": without one) that match.

        Raises UnavailableError while they are not listed.
        """
        known = self._kinds.get(kind)
        if known is None or not known.synced:
            raise UnavailableError(
                f"{kind.qualified} are not listed yet: if this lasts, the adapter may not list"
                " and watch them"
            )
        objects = known.of.get(namespace, {})
        return sorted(name for name, labels in objects.items() if selector.matches(labels))
