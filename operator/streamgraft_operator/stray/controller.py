"""The controller of objects of one kind that have no Job or can't be read: conditions say so."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from streamgraft_common import names
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, key_of
from streamgraft_common.resources import PARALLEL_REGION, PROCESSING_ELEMENT
from streamgraft_common.resources.base import Condition, CustomKind
from streamgraft_operator import events
from streamgraft_operator.context import Context
from streamgraft_operator.kit.caches import Collection
from streamgraft_operator.kit.conditions import State, merged
from streamgraft_operator.kit.control_loop import Controller, Outcome, Watch, desired_changed
from streamgraft_operator.kit.coordinator import Coordinator, Patch
from streamgraft_operator.kit.objects import own_key
from streamgraft_operator.kit.parsed import Reader, obstacle, pe_spec, region_spec
from streamgraft_operator.stray.step import states, to_say


@dataclass(frozen=True)
class Objects:
    """One kind: its objects, who writes them, and how their spec is read."""

    kind: CustomKind
    cache: Collection
    write: Coordinator
    spec: Reader[Any]


class StrayController(Controller):
    """Tells of objects of one kind that nothing is done with, and why."""

    def __init__(self, context: Context, objects: Objects) -> None:
        self.name = f"stray-{objects.kind.plural}"
        self._kind = objects.kind.kind
        self._objects, self._write, self._spec = objects.cache, objects.write, objects.spec
        self._jobs = context.caches.jobs
        self._recorder = context.recorder

    @property
    def watches(self) -> Sequence[Watch]:
        """The objects of the kind, and Jobs that come and go."""
        return (
            Watch(self._objects, own_key, desired_changed),
            Watch(self._jobs, self._of_job, _came_or_went),
        )

    async def reconcile(self, key: Key) -> Outcome:
        """Set the conditions, if there is anything to say."""
        item = self._objects.get(key)
        if item is None or "deletionTimestamp" in item["metadata"]:
            return None
        wanted = self._states(item)
        if not to_say(wanted, _said(item)):
            return None
        news: list[State] = []

        def command(newest: Object) -> Patch | None:
            old, generation = _said(newest), newest["metadata"]["generation"]
            new = merged(old, to_say(wanted, old), time.time(), generation)
            known = {(condition.type, condition.status, condition.reason) for condition in old}
            news[:] = [
                state
                for state in wanted
                if state.status == "False" and (state.type, "False", state.reason) not in known
            ]
            return None if new == old else {"status": {"conditions": [c.to_wire() for c in new]}}

        if await self._write.update(key, command, status=True) is not None:
            for state in news:
                self._recorder.record(item, events.stray(state.reason, state.message))
        return None

    def _states(self, item: Object) -> tuple[State, State]:
        namespace, _ = key_of(item)
        job = item["spec"]["job"]
        return states(
            self._kind,
            job,
            exists=self._jobs.get((namespace, job)) is not None,
            labelled=item["metadata"].get("labels", {}).get(names.LABEL_JOB) == job,
            obstacle=obstacle(self._spec, item),
        )

    def _of_job(self, job: Object) -> Iterable[Key]:
        return [
            key_of(item)
            for item in self._objects.items()
            if (key_of(item)[0], item["spec"]["job"]) == key_of(job)
        ]


def stray_controllers(context: Context) -> Iterator[StrayController]:
    """Yield the controllers of the kinds that belong to a Job by a label."""
    caches, write = context.caches, context.write
    regions = Objects(PARALLEL_REGION, caches.regions, write.regions, region_spec)
    yield StrayController(context, regions)
    elements = Objects(
        PROCESSING_ELEMENT, caches.processing_elements, write.processing_elements, pe_spec
    )
    yield StrayController(context, elements)


def _said(item: Object) -> list[Condition]:
    found = (item.get("status") or {}).get("conditions") or []
    return [Condition.model_validate(condition) for condition in found]


def _came_or_went(old: Object | None, new: Object | None) -> bool:
    return old is None or new is None
