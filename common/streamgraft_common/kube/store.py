"""A level-triggered cache of one collection, kept by list and watch.

Consumers hear of keys, never of events: they look up the newest object and reconcile. A dropped,
delayed or repeated event can then do no harm.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator

from streamgraft_common.kube.client import KubeClient, Object
from streamgraft_common.kube.errors import ApiError, Gone, Unreachable

log = logging.getLogger(__name__)

Key = tuple[str, str]
"""(namespace, name); cluster-scoped objects have the namespace ""."""

Listener = Callable[[Key, Object | None, Object | None], None]
"""Called with (key, old, new) after the cache changed; None means absent. Must not block."""


def key_of(item: Object) -> Key:
    """Return the key of an object."""
    metadata = item["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


class Store:
    """Objects of one collection (`path`, optionally by label or field selector).

    `run()` lists, watches and reconnects for ever; `synced` is set after the first full list.
    """

    def __init__(self, client: KubeClient, path: str, **selectors: str) -> None:
        self._client = client
        self._path = path
        self._selectors = selectors
        self._items: dict[Key, Object] = {}
        self._listeners: list[Listener] = []
        self.synced = asyncio.Event()

    def get(self, key: Key) -> Object | None:
        """Return the object, or None."""
        return self._items.get(key)

    def items(self) -> Iterator[Object]:
        """Iterate over all objects."""
        return iter(list(self._items.values()))

    def listen(self, listener: Listener) -> None:
        """Call `listener` on every change from now on."""
        self._listeners.append(listener)

    async def run(self) -> None:
        """Keep the cache until cancelled."""
        backoff = 0.1
        while True:
            try:
                version = await self._list()
                backoff = 0.1
                while True:
                    version = await self._watch(version)
            except Gone:
                continue
            except (ApiError, Unreachable) as error:
                log.warning("list/watch of %s: %s; again in %.1f s", self._path, error, backoff)
                await asyncio.sleep(backoff)
                backoff = min(backoff * 2, 10.0)

    async def _list(self) -> str:
        listing = await self._client.get(self._path, **self._selectors)
        fresh = {key_of(item): item for item in listing["items"]}
        for key in [key for key in self._items if key not in fresh]:
            self._set(key, None)
        for key, item in fresh.items():
            if self._items.get(key) != item:
                self._set(key, item)
        self.synced.set()
        version: str = listing["metadata"]["resourceVersion"]
        return version

    async def _watch(self, version: str) -> str:
        async for kind, item in self._client.watch(self._path, version, self._selectors):
            version = item["metadata"]["resourceVersion"]
            if kind == "BOOKMARK":
                continue
            self._set(key_of(item), None if kind == "DELETED" else item)
        return version

    def _set(self, key: Key, new: Object | None) -> None:
        old = self._items.get(key)
        if new is None:
            self._items.pop(key, None)
        else:
            self._items[key] = new
        for listener in self._listeners:
            listener(key, old, new)
