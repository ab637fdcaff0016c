"""The command on Jobs."""

import time
from collections.abc import Sequence
from typing import Any

from streamgraft_common.conditions import find
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, key_of
from streamgraft_operator.job.step import message, phase
from streamgraft_operator.kit.conditions import ROLLING_BACK, SUBMITTED, State, merged
from streamgraft_operator.kit.coordinator import Coordinator, Patch
from streamgraft_operator.kit.parsed import job_status


async def report(
    write: Coordinator,
    key: Key,
    states: Sequence[State],
    generation: int,
    *,
    about: int | None = None,
    yields: bool = False,
    **fields: Any,
) -> Object | None:
    """Set conditions and further fields of the status; phase and message follow from them.

    `generation` is the metadata.generation of the spec that was looked at, `about` that of the one
    which the states are about, if it is another. `yields`: nothing is set once the submission is
    being rolled back, whatever was looked at before that.
    """

    def command(job: Object) -> Patch | None:
        old = job_status(job)
        submitted = find(old.conditions, SUBMITTED)
        if yields and submitted and submitted.reason == ROLLING_BACK:
            return None
        conditions = merged(old.conditions, states, time.time(), about or generation)
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

    return await write.update(key, command, status=True)


async def tell(write: Coordinator, job: Object, state: State) -> None:
    """Set a condition of a Job as it was looked at."""
    await report(write, key_of(job), [state], job["metadata"]["generation"])
