"""The single writer of Jobs."""

import time
from collections.abc import Sequence
from typing import Any

from streamgraft_common import names
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key
from streamgraft_operator.conditions import State, merged
from streamgraft_operator.conductors.job import message, phase
from streamgraft_operator.coordinators.coordinator import Coordinator, Patch
from streamgraft_operator.parsed import job_status


class JobCoordinator(Coordinator):
    """Commands on Jobs."""

    async def hold(self, key: Key) -> Object | None:
        """Add our finalizer, so that a deleted job waits for its clean-up."""

        def command(job: Object) -> Patch | None:
            finalizers = job["metadata"].get("finalizers", [])
            if names.FINALIZER in finalizers or "deletionTimestamp" in job["metadata"]:
                return None
            return {"metadata": {"finalizers": [*finalizers, names.FINALIZER]}}

        return await self.update(key, command)

    async def release(self, key: Key) -> None:
        """Remove our finalizer: a deleted job is gone with that."""

        def command(job: Object) -> Patch | None:
            finalizers = job["metadata"].get("finalizers", [])
            if names.FINALIZER not in finalizers:
                return None
            rest = [name for name in finalizers if name != names.FINALIZER]
            return {"metadata": {"finalizers": rest}}

        await self.update(key, command)

    async def report(
        self, key: Key, states: Sequence[State], generation: int, **fields: Any
    ) -> Object | None:
        """Set conditions and further fields of the status; phase and message follow from them.

        `generation` is the metadata.generation of the spec that was looked at.
        """

        def command(job: Object) -> Patch | None:
            old = job_status(job)
            conditions = merged(old.conditions, states, time.time(), generation)
            new = old.model_copy(
                update={
                    **fields,
                    "conditions": conditions,
                    "phase": phase(conditions),
                    "message": message(conditions),
                    "observed_generation": generation,
                }
            )
            return None if new == old else {"status": new.to_wire()}

        return await self.update(key, command, status=True)
