"""The controller of kinds that exist as schema only: a condition on every object says so."""

import time
from collections.abc import Sequence

from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key
from streamgraft_common.resources.base import Condition, CustomKind
from streamgraft_operator.context import Context
from streamgraft_operator.kit.conditions import READY, State, merged
from streamgraft_operator.kit.control_loop import Controller, Outcome, Watch, desired_changed
from streamgraft_operator.kit.coordinator import Patch
from streamgraft_operator.kit.objects import own_key


class SchemaOnlyController(Controller):
    """Tells users of one kind that nothing will happen."""

    def __init__(self, context: Context, kind: CustomKind) -> None:
        self.name = f"schema-only-{kind.plural}"
        self._objects = context.caches.schema_only[kind.kind]
        self._write = context.write.schema_only[kind.kind]
        self._state = State(
            READY,
            "False",
            "NotSupported",
            f"this version of Streamgraft keeps {kind.kind} objects and does nothing with them",
        )

    @property
    def watches(self) -> Sequence[Watch]:
        """The objects of the kind."""
        return (Watch(self._objects, own_key, desired_changed),)

    async def reconcile(self, key: Key) -> Outcome:
        """Set the condition."""

        def command(item: Object) -> Patch | None:
            generation = item["metadata"]["generation"]
            said = (item.get("status") or {}).get("conditions") or []
            old = [Condition.model_validate(condition) for condition in said]
            new = merged(old, [self._state], time.time(), generation)
            if new == old:
                return None
            conditions = [condition.to_wire() for condition in new]
            return {"status": {"conditions": conditions, "observedGeneration": generation}}

        if self._objects.get(key) is not None:
            await self._write.update(key, command, status=True)
        return None
