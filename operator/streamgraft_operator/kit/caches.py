"""The operator's view of the cluster: one cache per kind, and indexes into them."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Self

from streamgraft_common import names
from streamgraft_common.kinds import AUTOSCALER, CONFIG_MAP, NODE, POD, SERVICE, Kind
from streamgraft_common.kube import KubeClient, Store
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, Listener, key_of
from streamgraft_common.resources import (
    CONSISTENT_REGION,
    EXPORT,
    HOST_POOL,
    IMPORT,
    JOB,
    PARALLEL_REGION,
    PROCESSING_ELEMENT,
    SAVEPOINT,
    TEST_SUITE,
)
from streamgraft_operator.kit.nodes import trimmed
from streamgraft_operator.kit.objects import (
    label_key,
    named_cut,
    pool_key,
    saved_job,
    scaled_region,
)

log = logging.getLogger(__name__)

EVERYWHERE = ""

UNLISTED_SECONDS = 30.0
"""How often it is told what keeps the operator from beginning."""

REFUSAL_SECONDS = 5.0
"""How long a namespace may be refused before it is left out: an API server that has just started
does not know all rights yet."""


class WentBack(Exception):
    """Objects are older than they were: whoever remembers anything of them has to begin anew."""


def _went_back() -> None:
    raise WentBack


class Collection:
    """All objects of one kind in the watched namespaces, as one cache.

    With `withheld`, what is in a namespace does not show before the namespace is admitted, and with
    `label` only what has that label.
    """

    def __init__(
        self,
        client: KubeClient,
        resource: Kind,
        namespaces: Sequence[str],
        *,
        metadata_only: bool = False,
        trim: Callable[[Object], Object] | None = None,
        withheld: bool = False,
        label: str = "",
    ) -> None:
        self._stores: Mapping[str, Store] = {
            namespace: Store(
                client,
                resource.path(namespace),
                metadata_only=metadata_only,
                trim=trim,
                restored=_went_back,
                **({"labelSelector": label} if label else {}),
            )
            for namespace in namespaces or (EVERYWHERE,)
        }
        self._shown: dict[str, Store] = {} if withheld else dict(self._stores)
        self._listeners: list[Listener] = []
        self._metadata_only = metadata_only
        self._label = label
        self.name = resource.qualified

    def get(self, key: Key) -> Object | None:
        """Return the newest known object, or None."""
        store = self._store(key[0])
        return store.get(key) if store else None

    def items(self) -> Iterator[Object]:
        """Iterate over all objects."""
        for store in self._shown.values():
            yield from store.items()

    def listen(self, listener: Listener) -> None:
        """Call `listener` on every change."""
        self._listeners.append(listener)
        for store in self._shown.values():
            store.listen(listener)

    def admit(self, namespace: str) -> None:
        """Show what is in a namespace that was withheld; `announce` tells the listeners."""
        if store := self._stores.get(namespace):
            self._shown[namespace] = store

    def announce(self, namespace: str) -> None:
        """Tell all listeners of what is in a namespace that was admitted, and of its changes."""
        if store := self._stores.get(namespace):
            for listener in self._listeners:
                store.listen(listener)
                for item in store.items():
                    listener(key_of(item), None, item)

    def observe(self, item: Object) -> None:
        """Take in the answer to a write of our own: what the watch tells of, too, or it would stay
        for good."""
        if self._label and self._label not in item["metadata"].get("labels", {}):
            return
        if store := self._store(key_of(item)[0]):
            store.observe({"metadata": item["metadata"]} if self._metadata_only else item)

    async def run(self) -> None:
        """Keep the cache until cancelled. Raises WentBack."""
        async with asyncio.TaskGroup() as group:
            for store in self._stores.values():
                group.create_task(store.run())

    async def wait_answered(self, namespace: str) -> None:
        """Wait until a namespace was listed once, or the API server refused to."""
        if store := self._stores.get(namespace):
            await store.answered.wait()

    async def wait_synced(self, namespace: str) -> None:
        """Wait until a namespace was listed once."""
        if store := self._stores.get(namespace):
            await store.synced.wait()

    def is_synced(self, namespace: str) -> bool:
        """Return whether a namespace was listed once."""
        store = self._stores.get(namespace)
        return store is None or store.synced.is_set()

    def unlisted(self) -> Iterator[str]:
        """Tell where objects were not listed yet, and why."""
        for namespace, store in self._stores.items():
            if not store.synced.is_set():
                place = f" in namespace {namespace}" if namespace else ""
                yield f"{self.name}{place}: {store.failure or 'no answer yet'}"

    def _store(self, namespace: str) -> Store | None:
        return self._shown.get(namespace) or self._shown.get(EVERYWHERE)


class Index:
    """The objects of a collection by a key computed from each (None: not in the index)."""

    def __init__(self, collection: Collection, key: Callable[[Object], Key | None]) -> None:
        self._key = key
        self._members: dict[Key, dict[Key, Object]] = {}
        self._sorted: dict[Key, Sequence[Object]] = {}
        collection.listen(self._changed)

    def get(self, key: Key) -> Sequence[Object]:
        """Return the objects under `key`, by name."""
        if (found := self._sorted.get(key)) is None:
            if not (members := self._members.get(key)):
                return ()
            found = self._sorted[key] = tuple(members[member] for member in sorted(members))
        return found

    def count(self, key: Key) -> int:
        """Return how many objects are under `key`."""
        return len(self._members.get(key, ()))

    def _changed(self, member: Key, old: Object | None, new: Object | None) -> None:
        before = self._key(old) if old else None
        after = self._key(new) if new else None
        if before:
            self._sorted.pop(before, None)
        if after:
            self._sorted.pop(after, None)
        if before and before != after:
            del self._members[before][member]
            if not self._members[before]:
                del self._members[before]
        if new and after:
            self._members.setdefault(after, {})[member] = new


class Caches:
    """Everything the operator watches.

    Of namespaces that it watches by name, each shows when all in it was listed: its objects are
    read in the light of each other. One that must not be read, say because it is gone and its
    RoleBinding with it, holds up no other.
    """

    def __init__(self, client: KubeClient, namespaces: Sequence[str]) -> None:
        of = partial(Collection, client, namespaces=namespaces, withheld=bool(namespaces))
        self._settled = {namespace: asyncio.Event() for namespace in namespaces}
        self._admitted = asyncio.Event()
        """Whether there is anything to look after."""
        if not namespaces:
            self._admitted.set()
        self.jobs = of(JOB)
        self.processing_elements = of(PROCESSING_ELEMENT)
        self.regions = of(PARALLEL_REGION)
        self.host_pools = of(HOST_POOL)
        self.savepoints = of(SAVEPOINT)
        self.consistent_regions = of(CONSISTENT_REGION)
        self.nodes = Collection(client, NODE, (), trim=trimmed)
        self.pods = of(POD, label=names.LABEL_JOB)
        # All ConfigMaps, since a bundle's may be anyone's; of ours the content id says enough.
        self.config_maps = of(CONFIG_MAP, metadata_only=True)
        # All of them, since one may have the name of a PE's; whose it is, and its content id, do.
        self.services = of(SERVICE, metadata_only=True)
        self.exports = of(EXPORT)
        self.imports = of(IMPORT)
        self.test_suites = of(TEST_SUITE)
        # All of them, since a user may have one for a region.
        self.autoscalers = of(AUTOSCALER)
        job = label_key(names.LABEL_JOB)
        self.pods_by_pool = Index(self.pods, pool_key)
        self.pods_by_pe = Index(self.pods, label_key(names.LABEL_PE))
        self.pods_by_job = Index(self.pods, job)
        self.processing_elements_by_job = Index(self.processing_elements, job)
        self.exports_by_job = Index(self.exports, job)
        self.imports_by_job = Index(self.imports, job)
        self.regions_by_job = Index(self.regions, job)
        self.config_maps_by_job = Index(self.config_maps, job)
        self.autoscalers_by_region = Index(self.autoscalers, scaled_region)
        self.savepoints_by_job = Index(self.savepoints, saved_job)
        self.savepoints_by_cut = Index(self.savepoints, named_cut)
        self.consistent_regions_by_job = Index(self.consistent_regions, saved_job)
        self.services_by_job = Index(self.services, job)
        self.host_pools_by_job = Index(self.host_pools, job)

    @property
    def collections(self) -> tuple[Collection, ...]:
        """All caches."""
        return (
            self.jobs,
            self.processing_elements,
            self.regions,
            self.host_pools,
            self.savepoints,
            self.consistent_regions,
            self.nodes,
            self.pods,
            self.config_maps,
            self.services,
            self.autoscalers,
            self.exports,
            self.imports,
            self.test_suites,
        )

    async def run(self) -> None:
        """Keep all caches until cancelled."""
        async with asyncio.TaskGroup() as group:
            for collection in self.collections:
                group.create_task(collection.run())
            for namespace in self._settled:
                group.create_task(self._admit(namespace))

    async def synced(self) -> Self:
        """Wait until everything was listed once, but for namespaces that must not be read.

        While that is all of them it waits, and tells why.
        """
        telling = asyncio.ensure_future(self._tell_unlisted())
        try:
            for collection in self.collections:
                await collection.wait_synced(EVERYWHERE)
            for settled in self._settled.values():
                await settled.wait()
            await self._admitted.wait()
        finally:
            telling.cancel()
        return self

    async def _tell_unlisted(self) -> None:
        while True:
            await asyncio.sleep(UNLISTED_SECONDS)
            unlisted = [text for collection in self.collections for text in collection.unlisted()]
            log.error(
                "leading, but nothing is looked after before all is listed: %s", "; ".join(unlisted)
            )

    async def _admit(self, namespace: str) -> None:
        """Show a namespace when all in it was listed; if it is refused nobody waits for it."""
        for collection in self.collections:
            await collection.wait_answered(namespace)
        if not self._is_synced(namespace):
            await asyncio.sleep(REFUSAL_SECONDS)
        if left_out := not self._is_synced(namespace):
            log.warning(
                "namespace %s is left out, for the operator must not list its %s: if it exists,"
                " bind the operator's role of this release there (`helm upgrade` does); if it is"
                " gone, take it off the operator's namespaces",
                namespace,
                ", ".join(it.name for it in self.collections if not it.is_synced(namespace)),
            )
            self._settled[namespace].set()
        for collection in self.collections:
            await collection.wait_synced(namespace)
        for collection in self.collections:
            collection.admit(namespace)
        for collection in self.collections:
            collection.announce(namespace)
        self._admitted.set()
        self._settled[namespace].set()
        if left_out:
            log.info("namespace %s can be read now, and is looked after", namespace)

    def _is_synced(self, namespace: str) -> bool:
        return all(collection.is_synced(namespace) for collection in self.collections)
