"""What runs controllers: watches fill a queue, workers reconcile, everything is looked at again
every minute."""

import asyncio
import enum
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from streamgraft_common.kube import ApiError, Unreachable
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, key_of
from streamgraft_operator.kit import metrics
from streamgraft_operator.kit.caches import Collection
from streamgraft_operator.kit.work_queue import Closed, WorkQueue

log = logging.getLogger(__name__)

RESYNC_SECONDS = 60.0
WORKERS = 8
STALE_SECONDS = 0.05
"""When to look again after the cache was found behind what was to be written."""
_DESIRED = ("uid", "generation", "annotations", "deletionTimestamp")
_REPORTED = frozenset(("runtime", "phase", "message", "conditions"))


class Again(enum.Enum):
    """What a reconcile returns if what it waits for announces itself by no watch."""

    WITH_BACKOFF = "with back-off"


Predicate = Callable[[Object | None, Object | None], bool]
"""Whether a change of an object, from old to new, matters to a controller; None: not there."""
Outcome = Again | float | None
"""None: done. A number: look again after so many seconds."""


def _any_change(_: Object | None, __: Object | None) -> bool:
    return True


def desired_changed(old: Object | None, new: Object | None) -> bool:
    """Return whether more than the status changed: existence, spec, content id, deletion."""
    if old is None or new is None:
        return True
    return _differ(old["metadata"], new["metadata"], _DESIRED)


def status_changed(*fields: str) -> Predicate:
    """Return whether an object came or went, or one of these fields of its status changed."""

    def predicate(old: Object | None, new: Object | None) -> bool:
        if old is None or new is None:
            return True
        return _differ(old.get("status") or {}, new.get("status") or {}, fields)

    return predicate


def runtime_changed(*fields: str) -> Predicate:
    """Return whether a PE came or went, or its pod says something else in one of these fields."""

    def predicate(old: Object | None, new: Object | None) -> bool:
        if old is None or new is None:
            return True
        before, after = ((item.get("status") or {}).get("runtime") or {} for item in (old, new))
        return _differ(before, after, fields)

    return predicate


def either(*predicates: Predicate) -> Predicate:
    """Return whether one of the predicates holds."""
    return lambda old, new: any(predicate(old, new) for predicate in predicates)


def launch_changed(old: Object | None, new: Object | None) -> bool:
    """Return whether a PE's desired state or its launch changed: not how its pod is."""
    if old is None or new is None or desired_changed(old, new):
        return True
    before, after = old.get("status") or {}, new.get("status") or {}
    return _differ(before, after, (before.keys() | after.keys()) - _REPORTED)


def _differ(before: Object, after: Object, fields: Iterable[str]) -> bool:
    return any(before.get(field) != after.get(field) for field in fields)


@dataclass(frozen=True)
class Watch:
    """Changes of a collection that matter, and the keys that a controller reconciles for each."""

    collection: Collection
    keys: Callable[[Object], Iterable[Key]]
    predicate: Predicate = _any_change


class Controller(ABC):
    """The one shape of controllers: reconcile is level-triggered, and safe to repeat."""

    name: str
    """Name in metrics and logs."""

    @property
    @abstractmethod
    def watches(self) -> Sequence[Watch]:
        """What leads to a reconcile."""

    @abstractmethod
    async def reconcile(self, key: Key) -> Outcome:
        """Bring the world closer to what the newest objects say."""

    def rest_seconds(self, key: Key) -> float:
        """Return how long a key rests after a reconcile, whatever changes in the meantime.

        In proportion to what the reconcile looks at, 0 for a few objects: a thousand changes of a
        large job then cost no thousand looks at all of it.
        """
        return 0.0


class ControlLoop:
    """Runs one controller."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._queue = WorkQueue()
        self._finished = metrics.RECONCILES.labels(controller.name)
        self._seconds = metrics.RECONCILE_SECONDS.labels(controller.name)
        for watch in controller.watches:
            watch.collection.listen(self._listener(watch))

    async def run(self, stopping: asyncio.Event) -> None:
        """Reconcile until `stopping`, and finish what is in hand then."""
        try:
            async with asyncio.TaskGroup() as group:
                resync = group.create_task(self._resync())
                for _ in range(WORKERS):
                    group.create_task(self._work())
                await stopping.wait()
                resync.cancel()
                self._queue.close()
        finally:
            self._queue.close()

    def _listener(self, watch: Watch) -> Callable[[Key, Object | None, Object | None], None]:
        def changed(_: Key, old: Object | None, new: Object | None) -> None:
            if self._matters(watch, old, new):
                for item in (old, new):
                    self._add_keys(watch, item)

        return changed

    def _matters(self, watch: Watch, old: Object | None, new: Object | None) -> bool:
        try:
            return watch.predicate(old, new)
        except Exception as error:  # one object that can't be read must not end the watch of all
            self._count(new or old, error)
            return True

    def _add_keys(self, watch: Watch, item: Object | None) -> None:
        try:
            for key in watch.keys(item) if item else ():
                self._queue.add(key)
        except Exception as error:  # as above
            self._count(item, error)

    def _count(self, item: Object | None, error: Exception) -> None:
        metrics.RECONCILE_ERRORS.labels(self._controller.name).inc()
        name = key_of(item) if item else ("", "")
        log.warning("%s: %s/%s can't be read: %r", self._controller.name, *name, error)

    async def _resync(self) -> None:
        while True:
            for watch in self._controller.watches:
                for item in watch.collection.items():
                    self._add_keys(watch, item)
            await asyncio.sleep(RESYNC_SECONDS)

    async def _work(self) -> None:
        while True:
            try:
                key = await self._queue.get()
            except Closed:
                return
            try:
                self._settle(key, await self._timed(key))
            except Exception as error:  # whatever it is, the key must be tried again
                metrics.RECONCILE_ERRORS.labels(self._controller.name).inc()
                expected = isinstance(error, ApiError | Unreachable)
                log.warning(
                    "%s %s/%s: %r", self._controller.name, *key, error, exc_info=not expected
                )
                self._queue.add_rate_limited(key)
            finally:
                self._queue.done(key, self._rest_seconds(key))

    def _rest_seconds(self, key: Key) -> float:
        try:
            return self._controller.rest_seconds(key)
        except Exception as error:  # one key's object that can't be read must not end the loop
            log.warning("%s %s/%s: %r", self._controller.name, *key, error)
            return 0.0

    async def _timed(self, key: Key) -> Outcome:
        begin = time.perf_counter()
        outcome = await self._controller.reconcile(key)
        self._finished.inc()
        self._seconds.observe(time.perf_counter() - begin)
        return outcome

    def _settle(self, key: Key, outcome: Outcome) -> None:
        if outcome is Again.WITH_BACKOFF:
            self._queue.add_rate_limited(key)
            return
        self._queue.forget(key)
        if isinstance(outcome, float):
            self._queue.add_after(key, outcome)
