"""What the fake API server stores: objects, versions, and the history that watches read."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from tests.simulation.fake_resources import FakeResource, Selector

from streamgraft_common.kube import Gone
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key


@dataclass(frozen=True)
class Change:
    """One write. `old` is None for a creation, `new` for a deletion.

    `last`: the new state; of a deletion the last state under the version of the deletion, as
    watches show it.
    """

    version: int
    key: Key
    old: Object | None
    new: Object | None
    last: Object

    def shown(self, selector: Selector | None) -> tuple[str, Object] | None:
        """Return how a watch with this selector tells the change, None if it doesn't."""
        old, new = self.old, self.new
        if selector is not None:
            old = old if old is not None and selector(old) else None
            new = new if new is not None and selector(new) else None
        if new is not None:
            return ("ADDED" if old is None else "MODIFIED"), new
        return ("DELETED", self.last) if old is not None else None


FIRST_VERSION = 100
"""As a real server has it: what was before is forgotten already."""

Observer = Callable[[FakeResource, Change], None]


class FakeStorage:
    """Objects are never changed in place, so readers and writers may share them.

    `observers` hear of every write at once, before anyone else.
    """

    def __init__(self) -> None:
        self.version = FIRST_VERSION
        self.observers: list[Observer] = []
        self._compacted = FIRST_VERSION
        self._items: dict[FakeResource, dict[Key, Object]] = defaultdict(dict)
        self._history: dict[FakeResource, list[Change]] = defaultdict(list)
        self._waiting: dict[FakeResource, list[Callable[[Change], None]]] = defaultdict(list)

    def items(self, resource: FakeResource) -> dict[Key, Object]:
        """Return all objects of a kind."""
        return self._items[resource]

    def resources(self) -> list[FakeResource]:
        """Return the kinds of which there are, or were, objects."""
        return list(self._items)

    def compact(self) -> None:
        """Forget the history: watches that are behind get 410."""
        self._history.clear()
        self._compacted = self.version

    def changes_after(self, resource: FakeResource, version: int) -> list[Change]:
        """Return the writes to a kind after a version. Raises Gone if they were forgotten."""
        if version < self._compacted:
            raise Gone(410, "Expired", f"too old resource version: {version} ({self._compacted})")
        history = self._history[resource]
        first = len(history)
        while first and history[first - 1].version > version:
            first -= 1
        return history[first:]

    def at_next_change(self, resource: FakeResource, callback: Callable[[Change], None]) -> None:
        """Call back once, at the next write to a kind."""
        self._waiting[resource].append(callback)

    def store(self, resource: FakeResource, key: Key, new: Object) -> Object:
        """Create or replace an object."""
        old = self.items(resource).get(key)
        self.version += 1
        new = {**new, "metadata": {**new["metadata"], "resourceVersion": str(self.version)}}
        self.items(resource)[key] = new
        self._tell(resource, Change(self.version, key, old, new, new))
        return new

    def remove(self, resource: FakeResource, key: Key, last: Object) -> Object:
        """Remove an object; `last` is its last state."""
        old = self.items(resource).pop(key)
        self.version += 1
        metadata = {**last["metadata"], "resourceVersion": str(self.version)}
        gone = {**last, "metadata": metadata}
        self._tell(resource, Change(self.version, key, old, None, gone))
        return gone

    def _tell(self, resource: FakeResource, change: Change) -> None:
        self._history[resource].append(change)
        for observer in self.observers:
            observer(resource, change)
        waiting, self._waiting[resource] = self._waiting[resource], []
        for callback in waiting:
            callback(change)
