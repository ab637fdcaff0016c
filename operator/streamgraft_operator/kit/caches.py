"""The operator's view of the cluster: one cache per kind, and indexes into them."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from streamgraft_operator.kit.objects import label_key, pool_key, saved_job, scaled_region

EVERYWHERE = ""


class Collection:
    """All objects of one kind in the watched namespaces, as one cache."""

    def __init__(
        self,
        client: KubeClient,
        resource: Kind,
        namespaces: Sequence[str],
        *,
        metadata_only: bool = False,
        **selectors: str,
    ) -> None:
        self._stores: Mapping[str, Store] = {
            namespace: Store(
                client, resource.path(namespace), metadata_only=metadata_only, **selectors
            )
            for namespace in namespaces or (EVERYWHERE,)
        }
        self._metadata_only = metadata_only

    def get(self, key: Key) -> Object | None:
        """Return the newest known object, or None."""
        store = self._stores.get(key[0]) or self._stores.get(EVERYWHERE)
        return store.get(key) if store else None

    def items(self) -> Iterator[Object]:
        """Iterate over all objects."""
        for store in self._stores.values():
            yield from store.items()

    def listen(self, listener: Listener) -> None:
        """Call `listener` on every change."""
        for store in self._stores.values():
            store.listen(listener)

    def observe(self, item: Object) -> None:
        """Take in the answer to a write of our own."""
        if store := self._store(key_of(item)[0]):
            store.observe({"metadata": item["metadata"]} if self._metadata_only else item)

    async def run(self) -> None:
        """Keep the cache until cancelled."""
        async with asyncio.TaskGroup() as group:
            for store in self._stores.values():
                group.create_task(store.run())

    async def wait_synced(self) -> None:
        """Wait until everything was listed once."""
        for store in self._stores.values():
            await store.synced.wait()

    def _store(self, namespace: str) -> Store | None:
        return self._stores.get(namespace) or self._stores.get(EVERYWHERE)


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
    """Everything the operator watches."""

    def __init__(self, client: KubeClient, namespaces: Sequence[str]) -> None:
        self.jobs = Collection(client, JOB, namespaces)
        self.processing_elements = Collection(client, PROCESSING_ELEMENT, namespaces)
        self.regions = Collection(client, PARALLEL_REGION, namespaces)
        self.host_pools = Collection(client, HOST_POOL, namespaces)
        self.savepoints = Collection(client, SAVEPOINT, namespaces)
        self.consistent_regions = Collection(client, CONSISTENT_REGION, namespaces)
        self.nodes = Collection(client, NODE, (), metadata_only=True)
        self.pods = Collection(client, POD, namespaces, labelSelector=names.LABEL_JOB)
        # All ConfigMaps, since a bundle's may be anyone's; of ours the content id says enough.
        self.config_maps = Collection(client, CONFIG_MAP, namespaces, metadata_only=True)
        self.services = Collection(client, SERVICE, namespaces, labelSelector=names.LABEL_JOB)
        self.exports = Collection(client, EXPORT, namespaces)
        self.imports = Collection(client, IMPORT, namespaces)
        self.test_suites = Collection(client, TEST_SUITE, namespaces)
        # All of them, since a user may have one for a region.
        self.autoscalers = Collection(client, AUTOSCALER, namespaces)
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

    async def synced(self) -> Self:
        """Wait until everything was listed once."""
        for collection in self.collections:
            await collection.wait_synced()
        return self
