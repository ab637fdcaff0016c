"""Pods that are still there long after they should have ended: their node is lost, or stuck.

Nobody removes such a pod, and what comes in its place would wait for ever. It is deleted by force,
which ends no process. That is safe for the shards that it may still run: the next owner closes
their checkpoints' logs and fences their transactional ids, so that the old one's next batch fails,
and it does not go on before the API server says that the shard is its own.

Clocks of machines are never compared: the operator waits from when it has itself seen that a pod is
being deleted. With a clock ahead of the API server's it would otherwise kill pods that are ending.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamgraft_common.kinds import POD
from streamgraft_common.kube.store import Key, key_of
from streamgraft_operator import events
from streamgraft_operator.context import Context
from streamgraft_operator.kit.control_loop import Controller, Outcome, Watch
from streamgraft_operator.kit.objects import own_key, pe_key
from streamgraft_operator.pe.pods import is_deleted_by_force

LOST_SECONDS = 30.0
"""After its grace period a pod has so long to go. Kubelets take a second or two."""


@dataclass(frozen=True)
class Deletion:
    """A pod's deletion, as it was asked for last: another one may give it less time."""

    uid: str
    timestamp: str
    """By the API server's clock."""
    grace_seconds: float


class LostPodController(Controller):
    """Deletes by force what no kubelet ends: pods of PEs and of warm pools."""

    name = "lost-pod"

    def __init__(self, context: Context) -> None:
        self._context = context
        self._pods = context.caches.pods
        self._seen: dict[Key, tuple[Deletion, float]] = {}
        """Deletions under way, and when each was seen first (time.monotonic())."""

    @property
    def watches(self) -> Sequence[Watch]:
        """All of our pods."""
        return (Watch(self._pods, own_key),)

    async def reconcile(self, key: Key) -> Outcome:
        """Delete a pod by force once it is lost."""
        pod = self._pods.get(key)
        deletion = deletion_of(pod) if pod else None
        if pod is None or deletion is None:
            self._seen.pop(key, None)
            return None
        seen, since = self._seen.get(key, (None, 0.0))
        if seen != deletion:
            since = time.monotonic()
            self._seen[key] = deletion, since
        if (seconds := since + deletion.grace_seconds + LOST_SECONDS - time.monotonic()) > 0:
            return seconds
        elements = (self._context.caches.processing_elements.get(pe) for pe in pe_key(pod))
        # In a list, objects of built-in kinds don't say what they are.
        itself = {"apiVersion": "v1", "kind": POD.kind, **pod}
        about = next((item for item in elements if item), itself)
        event = events.pod_lost(key_of(pod)[1], pod["spec"].get("nodeName", ""), LOST_SECONDS)
        self._context.recorder.record(about, event)
        await self._context.write.pods.delete(pod, 0)
        return None


def deletion_of(pod: Mapping[str, Any]) -> Deletion | None:
    """Return the deletion that a pod waits for; None if it is not being deleted, or was deleted by
    force already."""
    metadata = pod["metadata"]
    if "deletionTimestamp" not in metadata or is_deleted_by_force(pod):
        return None
    grace_seconds = metadata.get("deletionGracePeriodSeconds") or 0
    return Deletion(metadata["uid"], metadata["deletionTimestamp"], grace_seconds)
