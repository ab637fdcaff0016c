"""The subscription broker's controllers: a board that follows all Imports and Exports, and what is
written when the connections of one change. Neither side of a connection restarts."""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

from streamgraft_common import names
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, key_of
from streamgraft_common.resources import ExportStatus, ImportStatus
from streamgraft_operator.context import Context
from streamgraft_operator.kit.conditions import State, merged
from streamgraft_operator.kit.control_loop import Controller, Outcome, Watch, desired_changed
from streamgraft_operator.kit.coordinator import Command, Patch
from streamgraft_operator.kit.objects import own_key
from streamgraft_operator.kit.parsed import (
    Reader,
    export_spec,
    export_status,
    import_spec,
    import_status,
    pe_spec,
)
from streamgraft_operator.stream_broker.board import Board
from streamgraft_operator.stream_broker.changes import concerned, newly_requested, to_apply
from streamgraft_operator.stream_broker.matching import Offer, Subscriber
from streamgraft_operator.stream_broker.step import ImportDecision, export_step, import_step

log = logging.getLogger(__name__)

_Spec = TypeVar("_Spec")
_Seen = TypeVar("_Seen")


class Broker:
    """Keeps the board, and knows whom the last change of each object concerned."""

    def __init__(self, context: Context) -> None:
        self.board = Board()
        self._concerned_imports: dict[Key, set[Key]] = {}
        self._concerned_exports: dict[Key, set[Key]] = {}
        context.caches.exports.listen(self._export_changed)
        context.caches.imports.listen(self._import_changed)

    def imports_of(self, export: Object) -> Iterable[Key]:
        """Return the imports that the last change of an export concerned."""
        return self._concerned_imports.get(key_of(export), ())

    def exports_of(self, item: Object) -> Iterable[Key]:
        """Return the exports that the last change of an import concerned."""
        return self._concerned_exports.get(key_of(item), ())

    def _export_changed(self, key: Key, old: Object | None, new: Object | None) -> None:
        if not desired_changed(old, new):
            return
        offer = _read(Offer.of, key, export_spec, new)
        self._concerned_imports[key] = self.board.set_offer(key, offer)

    def _import_changed(self, key: Key, old: Object | None, new: Object | None) -> None:
        if not desired_changed(old, new):
            return
        subscriber = _read(Subscriber.of, key, import_spec, new)
        self._concerned_exports[key] = self.board.set_subscriber(key, subscriber)


class ImportController(Controller):
    """Tells PEs what their imports read, and users what they are connected to."""

    name = "import"

    def __init__(self, context: Context, broker: Broker) -> None:
        self._caches = context.caches
        self._write = context.write
        self._broker = broker

    @property
    def watches(self) -> Sequence[Watch]:
        """Imports, exports that they want, and PEs that have them."""
        caches = self._caches
        return (
            Watch(caches.imports, own_key, desired_changed),
            Watch(caches.exports, self._broker.imports_of, desired_changed),
            Watch(caches.processing_elements, _imports_of, desired_changed),
            Watch(caches.processing_elements, concerned, newly_requested),
        )

    async def reconcile(self, key: Key) -> Outcome:
        """Write what an import reads."""
        board = self._broker.board
        if (subscriber := board.subscriber(key)) is None:
            return None
        elements = self._caches.processing_elements_by_job.get((key[0], subscriber.spec.job))
        await self._write.imports.update(key, partial(to_apply, elements=elements))
        if (subscriber := board.subscriber(key)) is None:
            return None
        decision = import_step(subscriber, list(board.pairs(key).values()))
        await self._connect((key[0], subscriber.spec.job), decision)

        command = _reporting(import_status, decision.states, exports=list(decision.exports))
        await self._write.imports.update(key, command, status=True)
        return None

    async def _connect(self, job: Key, decision: ImportDecision) -> None:
        """Write the topics into the spec of the PE that has the import."""
        matched = decision.matched

        def command(item: Object) -> Patch | None:
            spec = pe_spec(item)
            others = [one for one in spec.imports if one.operator != matched.operator]
            new = sorted([*others, matched], key=lambda one: one.operator)
            new = [one for one in new if one.operator in spec.import_operators]
            return (
                None
                if new == spec.imports
                else {"spec": {"imports": [one.to_wire() for one in new]}}
            )

        for item in self._caches.processing_elements_by_job.get(job):
            if matched.operator in pe_spec(item).import_operators:
                await self._write.processing_elements.update(key_of(item), command)


class ExportController(Controller):
    """Tells users who imports a stream."""

    name = "export"

    def __init__(self, context: Context, broker: Broker) -> None:
        self._caches = context.caches
        self._write = context.write.exports
        self._broker = broker

    @property
    def watches(self) -> Sequence[Watch]:
        """Exports, and imports that want them."""
        caches, broker = self._caches, self._broker
        return (
            Watch(caches.exports, own_key, desired_changed),
            Watch(caches.imports, broker.exports_of, desired_changed),
            Watch(caches.imports, self._connected_exports),
            Watch(caches.processing_elements, concerned, newly_requested),
        )

    async def reconcile(self, key: Key) -> Outcome:
        """Report the imports of an export."""
        board = self._broker.board
        if (offer := board.offer(key)) is None:
            return None
        elements = self._caches.processing_elements_by_job.get((key[0], offer.spec.job))
        await self._write.update(key, partial(to_apply, elements=elements))
        if (offer := board.offer(key)) is None:
            return None
        decision = export_step(offer, board.imports(key))

        command = _reporting(export_status, decision.states, imports=list(decision.imports))
        await self._write.update(key, command, status=True)
        return None

    def _connected_exports(self, item: Object) -> Iterable[Key]:
        """Return the exports that an import says it reads, or has stopped to."""
        texts = import_status(item).exports
        return [(namespace, name) for namespace, _, name in (text.partition("/") for text in texts)]


def _imports_of(element: Object) -> Iterable[Key]:
    spec = pe_spec(element)
    namespace, _ = key_of(element)
    return [(namespace, names.shared_stream(spec.job, name)) for name in spec.import_operators]


def _reporting(
    read: Reader[ImportStatus] | Reader[ExportStatus], states: Sequence[State], **fields: Any
) -> Command:
    """Return the command that sets conditions, and who is connected."""

    def command(item: Object) -> Patch | None:
        old, generation = read(item), item["metadata"]["generation"]
        conditions = merged(old.conditions, states, time.time(), generation)
        found = {**fields, "observed_generation": generation, "conditions": conditions}
        new = type(old)(**found)
        return None if new == old else {"status": new.to_wire()}

    return command


def _read(
    made_of: Callable[[Key, _Spec], _Seen],
    key: Key,
    spec_of: Callable[[Object], _Spec],
    item: Object | None,
) -> _Seen | None:
    """Return what the board knows an object as; None for one that is gone, leaves, or can't be
    read: this is called by the watch of all of them, which must go on."""
    if item is None or "deletionTimestamp" in item["metadata"]:
        return None
    try:
        return made_of(key, spec_of(item))
    except Exception:
        log.exception("%s %s/%s can't be read", item.get("kind", "object"), *key)
        return None
