"""Commands on ProcessingElements: all that is written but `status.runtime`, which is the pod's."""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from streamgraft_common import names
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, key_of
from streamgraft_common.resources import ProcessingElementStatus, Saving, Stopped
from streamgraft_operator.kit.conditions import State, merged
from streamgraft_operator.kit.coordinator import Coordinator, Patch, updating
from streamgraft_operator.kit.parsed import pe_spec, pe_status
from streamgraft_operator.pe.launches import Relaunch, raised

_OURS = (
    "launchCount",
    "launchReason",
    "failureCount",
    "notBefore",
    "stopped",
    "pod",
    "phase",
    "message",
    "observedGeneration",
    "conditions",
)


async def launch(write: Coordinator, seen: Object, cause: Relaunch, ran_seconds: float) -> bool:
    """Raise the launch count of the PE that was `seen`: `cause` is about no other launch.

    Returns whether it did; False: someone else was quicker.
    """
    done = False

    def command(item: Object) -> Patch | None:
        nonlocal done
        done = _same_launch(item, seen) and "deletionTimestamp" not in item["metadata"]
        old = pe_status(item)
        new = raised(old, cause, ran_seconds, time.time())
        return _patch(item, old, new) if done else None

    return await write.update(key_of(seen), command, status=True) is not None and done


async def report(
    write: Coordinator,
    seen: Object,
    pod: str | None,
    phase: str,
    message: str,
    states: Sequence[State] = (),
) -> None:
    """Say how the pod of the launch that was `seen` is, and these further conditions; an outdated
    report is dropped.

    The first pod that is reported is the launch's for good.
    """

    def command(item: Object) -> Patch | None:
        old = pe_status(item)
        if not _same_launch(item, seen) or old.stopped:
            return None
        generation = item["metadata"].get("generation", 0)
        update = {
            "phase": phase,
            "message": message,
            "pod": old.pod or pod,
            "conditions": merged(old.conditions, states, time.time(), generation),
        }
        return _patch(item, old, old.model_copy(update=update))

    await write.update(key_of(seen), command, status=True)


async def stop(write: Coordinator, seen: Object, stopped: Stopped, message: str) -> Object | None:
    """Note that the launch that was `seen` is over and none follows; None: it is another."""
    done = False

    def command(item: Object) -> Patch | None:
        nonlocal done
        old = pe_status(item)
        done = _same_launch(item, seen) and not old.stopped
        phase = "Failed" if stopped.reason == "PodFailed" else "Stopped"
        update = {"stopped": stopped, "phase": phase, "message": message}
        return _patch(item, old, old.model_copy(update=update)) if done else None

    written = await write.update(key_of(seen), command, status=True)
    return written if done else None


async def assign(
    write: Coordinator, key: Key, seen: frozenset[int], shards: Iterable[int], epoch: int
) -> None:
    """Set the shards that the PE may run, as of an epoch; an older epoch never wins.

    Nothing is written to a PE that has others than were `seen`: the decision is outdated then,
    and in one epoch it could give back what has moved on.
    """
    wanted = sorted(shards)

    def command(item: Object) -> Patch | None:
        spec = pe_spec(item)
        if spec.epoch > epoch or seen != set(spec.shards):
            return None
        if seen == set(wanted) and spec.epoch == epoch:
            return None
        return {"spec": {"shards": wanted, "epoch": epoch}}

    await write.update(key, command)


async def save(write: Coordinator, key: Key, saving: Saving | None) -> None:
    """Ask for copies of checkpoints, or (None) for none any more."""

    def command(item: Object) -> Patch | None:
        if pe_spec(item).saving == saving:
            return None
        return {"spec": {"saving": saving.to_wire() if saving else None}}

    await write.update(key, command)


async def regenerate(
    write: Coordinator, key: Key, content_id: str, generation: int, from_job: Mapping[str, Any]
) -> None:
    """Note new content, and what follows the job: the pod of older content is then replaced.

    `from_job`: fields of the spec that the job decides.
    """

    def command(item: Object) -> Patch | None:
        patch: dict[str, Any] = {}
        if item["metadata"].get("annotations", {}).get(names.ANNOTATION_CONTENT) != content_id:
            patch["metadata"] = {
                "annotations": {names.ANNOTATION_CONTENT: content_id},
                "labels": {names.LABEL_GENERATION: str(generation)},
            }
        if spec := updating(item["spec"], from_job):
            patch["spec"] = spec
        return patch or None

    await write.update(key, command)


def _same_launch(item: Object, seen: Object) -> bool:
    """Return whether a PE is what it was: names come back, and launches are counted from 1 then."""
    same_uid: bool = item["metadata"]["uid"] == seen["metadata"]["uid"]
    return same_uid and pe_status(item).launch_count == pe_status(seen).launch_count


def _patch(
    item: Object, old: ProcessingElementStatus, new: ProcessingElementStatus
) -> Patch | None:
    """Return the patch from one status to another; the condition Ready follows from the phase.

    What merely confirms the status for a newer spec is not written.
    """
    if new == old:
        return None
    generation = item["metadata"].get("generation", 0)
    ready = State("Ready", "True" if new.phase == "Running" else "False", new.phase, new.message)
    conditions = merged(new.conditions, [ready], time.time(), generation)
    new = new.model_copy(update={"conditions": conditions, "observed_generation": generation})
    before, after = old.to_wire(), new.to_wire()
    changed = {key: after.get(key) for key in _OURS if before.get(key) != after.get(key)}
    return {"status": changed}
