"""The single writer of one kind (cloud native Streams, section 4.3)."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from weakref import WeakValueDictionary

from streamgraft_common import names
from streamgraft_common.kinds import Kind
from streamgraft_common.kube import ApiError, Conflict, KubeClient, NotFound
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, key_of
from streamgraft_operator.kit import metrics
from streamgraft_operator.kit.caches import Collection

Patch = Mapping[str, Any]
Command = Callable[[Object], Patch | None]
"""From the newest object to a JSON merge patch, or None if there is nothing to write. Pure: it
is run again whenever someone else wrote in between."""

ATTEMPTS = 10


def replacing(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON merge patch that makes `old` equal to `new`; empty if it is already."""
    patch: dict[str, Any] = {
        name: None for name in old if name not in new and old[name] is not None
    }
    for name, value in new.items():
        before = old.get(name)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            if nested := replacing(before, value):
                patch[name] = nested
        elif before != value:
            patch[name] = value
    return patch


def updating(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON merge patch that brings the fields of `new` into `old`; others stay."""
    return replacing({name: old.get(name) for name in new}, new)


def setting(manifest: Object, fields: Iterable[str]) -> Command:
    """Return the command that gives an object these fields of a manifest's spec; others stay."""
    wanted = {field: manifest["spec"].get(field) for field in fields}

    def command(item: Object) -> Patch | None:
        spec = updating(item["spec"], wanted)
        return {"spec": spec} if spec else None

    return command


class Coordinator:
    """Applies commands to objects of one kind: per object in order, each on the newest version.

    Every answer goes into the cache at once, so the operator reads what it wrote.
    """

    def __init__(self, client: KubeClient, resource: Kind, cache: Collection) -> None:
        self._client = client
        self._resource = resource
        self._cache = cache
        self._locks: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()

    async def create(self, manifest: Object) -> Object:
        """Create an object; if it exists already, return the one that is there."""
        key = key_of(manifest)
        try:
            item = await self._client.create(self._resource.path(key[0]), manifest)
        except Conflict as conflict:
            if conflict.reason != "AlreadyExists":
                raise
            item = await self._client.get(self._resource.of(key))
        else:
            self._count("create")
        self._cache.observe(item)
        return item

    async def update(self, key: Key, command: Command, *, status: bool = False) -> Object | None:
        """Apply `command` to the newest version; return the result, None if there is no object.

        With `status` the patch goes to the status subresource. Raises Conflict if others kept
        writing all the time.
        """
        path = self._resource.of(key)
        async with self._locks.setdefault(key, asyncio.Lock()):
            item = self._cache.get(key)
            for _ in range(ATTEMPTS):
                try:
                    item = item or await self._client.get(path)
                    if (patch := command(item)) is None:
                        return item
                    return await self._write(path, item, patch, status)
                except NotFound:
                    return None
                except Conflict:
                    item = None
        raise Conflict(409, "Conflict", f"{path} keeps changing")

    async def conclude(self, item: Object, status: Object) -> bool:
        """Write a status that was worked out from this very version of an object.

        Return False if that version is outdated: then the status has to be worked out again.
        """
        patch = replacing(item.get("status") or {}, status)
        if not patch:
            return True
        try:
            await self._write(self._resource.of(key_of(item)), item, {"status": patch}, True)
        except Conflict:
            return False
        return True

    async def hold(self, key: Key) -> Object | None:
        """Add our finalizer, so that a deleted object waits for its clean-up.

        Return None if it will not wait: it is gone, or was being deleted before it had ours.
        """

        def command(item: Object) -> Patch | None:
            finalizers = item["metadata"].get("finalizers", [])
            if names.FINALIZER in finalizers or "deletionTimestamp" in item["metadata"]:
                return None
            return {"metadata": {"finalizers": [*finalizers, names.FINALIZER]}}

        item = await self.update(key, command)
        held = item is not None and names.FINALIZER in item["metadata"].get("finalizers", [])
        return item if held else None

    async def release(self, key: Key) -> None:
        """Remove our finalizer: a deleted object is gone with that."""

        def command(item: Object) -> Patch | None:
            finalizers = item["metadata"].get("finalizers", [])
            if names.FINALIZER not in finalizers:
                return None
            rest = [name for name in finalizers if name != names.FINALIZER]
            return {"metadata": {"finalizers": rest}}

        await self.update(key, command)

    async def delete(
        self, item: Object, grace_seconds: int | None = None, *, unchanged: bool = False
    ) -> bool:
        """Delete this very object (not a later one of the same name); gone already is fine.

        `unchanged`: only in this very version. Return whether it was there, and is deleted.
        """
        metadata = item["metadata"]
        preconditions = {"uid": metadata["uid"]}
        if unchanged:
            preconditions["resourceVersion"] = metadata["resourceVersion"]
        body: dict[str, Any] = {
            "propagationPolicy": "Background",
            "preconditions": preconditions,
        }
        if grace_seconds is not None:
            body["gracePeriodSeconds"] = grace_seconds
        try:
            await self._client.request("DELETE", self._resource.of(key_of(item)), body=body)
            self._count("delete")
        except NotFound:
            return False
        except ApiError as error:
            if error.code != 409:  # a precondition: another object has the name by now
                raise
            return False
        return True

    async def delete_all(
        self, namespace: str, label_selector: str, *, propagation: str = "Background"
    ) -> None:
        """Delete everything in a namespace that matches, by one call."""
        await self._client.delete(
            self._resource.path(namespace), propagation=propagation, labelSelector=label_selector
        )
        self._count("deletecollection")

    async def exists(self, key: Key) -> bool:
        """Ask the API server itself, for the cache may lag."""
        try:
            self._cache.observe(await self._client.get(self._resource.of(key)))
        except NotFound:
            return False
        return True

    async def refresh(self, namespace: str, label_selector: str) -> None:
        """Take in all that the API server has and that matches, for the cache may lag."""
        selector = {"labelSelector": label_selector}
        for item in (await self._client.list(self._resource.path(namespace), selector))["items"]:
            self._cache.observe(item)

    async def _write(self, path: str, item: Object, patch: Patch, status: bool) -> Object:
        version = {"resourceVersion": item["metadata"]["resourceVersion"]}
        body = {**patch, "metadata": {**patch.get("metadata", {}), **version}}
        written = await self._client.patch(f"{path}/status" if status else path, body)
        self._count("patch")
        self._cache.observe(written)
        return written

    def _count(self, verb: str) -> None:
        metrics.API_WRITES.labels(verb, self._resource.kind).inc()
