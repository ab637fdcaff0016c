"""Pods that are still there long after they should have ended: their node is lost, or stuck.

Nobody removes such a pod, and what comes in its place would wait for ever. It is deleted by force,
which ends no process. That is safe for the shards that it may still run: the next owner closes
their checkpoints' logs and fences their transactional ids, so that the old one's next batch fails,
and it does not go on before the API server says that the shard is its own.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from streamgraft_common.kinds import POD
from streamgraft_common.kube.store import Key, key_of
from streamgraft_common.timestamps import from_rfc3339
from streamgraft_operator import events
from streamgraft_operator.context import Context
from streamgraft_operator.kit.control_loop import Controller, Outcome, Watch
from streamgraft_operator.kit.objects import own_key, pe_key
from streamgraft_operator.pe.pods import is_deleted_by_force

LOST_SECONDS = 30.0
"""After its grace period a pod has so long to go. Kubelets take a second or two."""


class LostPodController(Controller):
    """Deletes by force what no kubelet ends: pods of PEs and of warm pools."""

    name = "lost-pod"

    def __init__(self, context: Context) -> None:
        self._context = context
        self._pods = context.caches.pods

    @property
    def watches(self) -> Sequence[Watch]:
        """All of our pods."""
        return (Watch(self._pods, own_key),)

    async def reconcile(self, key: Key) -> Outcome:
        """Delete a pod by force once it is lost."""
        pod = self._pods.get(key)
        seconds = seconds_left(pod, time.time()) if pod else None
        if pod is None or seconds is None:
            return None
        if seconds > 0:
            return seconds
        elements = (self._context.caches.processing_elements.get(pe) for pe in pe_key(pod))
        # In a list, objects of built-in kinds don't say what they are.
        itself = {"apiVersion": "v1", "kind": POD.kind, **pod}
        about = next((item for item in elements if item), itself)
        event = events.pod_lost(key_of(pod)[1], pod["spec"].get("nodeName", ""), LOST_SECONDS)
        self._context.recorder.record(about, event)
        await self._context.write.pods.delete(pod, 0)
        return None


def seconds_left(pod: Mapping[str, Any], now: float) -> float | None:
    """Return after how many seconds a pod counts as lost; None if it is not being deleted, or was
    deleted by force already. `now`: Unix seconds."""
    ends_at = pod["metadata"].get("deletionTimestamp")  # with the grace period
    if ends_at is None or is_deleted_by_force(pod):
        return None
    return max(0.0, from_rfc3339(ends_at) + LOST_SECONDS - now)
