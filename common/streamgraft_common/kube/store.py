"""A level-triggered cache of one collection, kept by list and watch.

Consumers hear of keys, never of events: they look up the newest object and reconcile. A dropped,
delayed or repeated event can then do no harm.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Iterator

from streamgraft_common.kube.client import KubeClient, Object
from streamgraft_common.kube.errors import ApiError, Forbidden, Gone, NotFound, Unreachable

log = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 10.0
QUIET_SECONDS = 5.0
"""A watch that held so long was a good one, though it had nothing to tell."""
_REMEDIES: dict[type[Exception], str] = {
    NotFound: " (its definition is missing: `helm upgrade`, or apply deploy/crds of this release)",
    Forbidden: " (the role lacks it: `helm upgrade`, or apply the roles of this release)",
}

Key = tuple[str, str]
"""(namespace, name); cluster-scoped objects have the namespace ""."""

Listener = Callable[[Key, Object | None, Object | None], None]
"""Called with (key, old, new) after the cache changed; None means absent. Must not block."""


def key_of(item: Object) -> Key:
    """Return the key of an object."""
    metadata = item["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def version_of(item: Object) -> int:
    """Return the resource version; within one collection newer objects have greater ones."""
    return int(item["metadata"].get("resourceVersion", 0))


class Store:
    """Objects of one collection (`path`, optionally by label or field selector).

    `run()` lists, watches and reconnects for ever; `synced` is set after the first full list,
    `answered` then too, or as soon as the server has refused one.
    With `metadata_only` the server sends no more than `metadata`, so large objects cost nothing.
    `trim` returns what is to be kept of an object: its name and version, and whatever is read.
    `restored` is called when the collection went back in time: versions and generations that were
    seen come again, and are others.
    """

    def __init__(
        self,
        client: KubeClient,
        path: str,
        *,
        metadata_only: bool = False,
        trim: Callable[[Object], Object] | None = None,
        restored: Callable[[], None] = lambda: None,
        **selectors: str,
    ) -> None:
        self._client = client
        self._path = path
        self._selectors = selectors
        self._metadata_only = metadata_only
        self._trim = trim
        self._restored = restored
        self._items: dict[Key, Object] = {}
        self._delivered = 0
        """Resource version up to which list and watch have shown everything."""
        self._listeners: list[Listener] = []
        self.answered = asyncio.Event()
        self.synced = asyncio.Event()
        self.failure = ""
        """The last one of list or watch, and what to do about it."""

    def get(self, key: Key) -> Object | None:
        """Return the object, or None."""
        return self._items.get(key)

    def items(self) -> Iterator[Object]:
        """Iterate over all objects."""
        return iter(list(self._items.values()))

    def listen(self, listener: Listener) -> None:
        """Call `listener` on every change from now on."""
        self._listeners.append(listener)

    def observe(self, item: Object) -> None:
        """Take in the answer to a write of our own, so that we read what we wrote.

        The watch delivers the same object a little later; whichever is newer stays. An answer that
        comes after that tells nothing new: what it tells of may have been deleted since.
        """
        if version_of(item) > self._delivered:
            self._apply(item)

    async def run(self) -> None:
        """Keep the cache until cancelled.

        A watch that breaks off goes on where it was; only one that is too old needs a list. Pauses
        grow as long as nothing is heard, whatever the lists say.
        """
        pause, listed = FIRST_PAUSE_SECONDS, False
        while True:
            began, heard, wanted = time.monotonic(), self._delivered, 0.0
            try:
                if not listed:
                    await self._list()
                    listed, heard = True, self._delivered
                await self._watch()
            except Gone as error:
                log.info("watch of %s: %s; listing it again", self._path, error)
                listed = False
            except (ApiError, Unreachable) as error:
                wanted = error.retry_after if isinstance(error, ApiError) else 0.0
                self.failure = f"{error}{_REMEDIES.get(type(error), '')}"
                log.warning("list/watch of %s: %s", self._path, self.failure)
                if isinstance(error, Forbidden):
                    self.answered.set()
            if self._delivered != heard or time.monotonic() - began > QUIET_SECONDS:
                pause = FIRST_PAUSE_SECONDS
            await asyncio.sleep(max(random.uniform(1.0, 1.5) * pause, wanted))
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)

    async def _list(self) -> None:
        listing = await self._client.list(
            self._path, self._selectors, metadata_only=self._metadata_only
        )
        version = version_of(listing)
        if version < self._delivered:
            log.warning("%s went back to an older version: was etcd restored?", self._path)
            self._forget_versions()
            self._restored()
        self._delivered = version
        fresh = {key_of(item): item for item in listing["items"] or ()}
        for key in [key for key in self._items if key not in fresh]:
            self._remove(key)
        for item in fresh.values():
            self._apply(item)
        self.answered.set()
        self.synced.set()

    def _forget_versions(self) -> None:
        """Let whatever is listed next replace what is known."""
        for key, item in self._items.items():
            metadata = {**item["metadata"], "resourceVersion": "0"}
            self._items[key] = {**item, "metadata": metadata}

    async def _watch(self) -> None:
        began = self._delivered
        events = self._client.watch(
            self._path, str(began), self._selectors, metadata_only=self._metadata_only
        )
        async for kind, item in events:
            version = version_of(item)
            if version < began:
                raise Gone(410, "Expired", f"{version} comes after {began}: was etcd restored?")
            if version <= self._delivered:
                continue  # known already
            self._delivered = version
            if kind == "DELETED":
                self._remove(key_of(item))
            elif kind != "BOOKMARK":
                self._apply(item)

    def _apply(self, item: Object) -> None:
        key = key_of(item)
        known = self._items.get(key)
        if known is None or version_of(item) > version_of(known):
            self._set(key, self._trim(item) if self._trim else item)

    def _remove(self, key: Key) -> None:
        """Forget an object that is gone by now, unless an answer showed a newer one."""
        known = self._items.get(key)
        if known is not None and version_of(known) <= self._delivered:
            self._set(key, None)

    def _set(self, key: Key, new: Object | None) -> None:
        old = self._items.get(key)
        if new is None:
            self._items.pop(key, None)
        else:
            self._items[key] = new
        for listener in self._listeners:
            listener(key, old, new)
