"""Which stages stand still for a savepoint, and how PEs are seen by those who move their shards."""

from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, key_of
from streamgraft_operator.kit.caches import Caches
from streamgraft_operator.kit.parsed import pe_spec, pe_status
from streamgraft_operator.pe.pods import pod_view
from streamgraft_operator.pe.view import PeView
from streamgraft_operator.savepoint.step import ACTIVE


def parked_stages(caches: Caches, job: Key) -> frozenset[str]:
    """Return the stages of a job that hold no shards now, by name."""
    return frozenset(
        name
        for item in caches.savepoints_by_job.get(job)
        if is_active(item)
        for name in item["status"].get("parked", [])
    )


def is_active(savepoint: Object) -> bool:
    """Return whether a savepoint keeps stages from running."""
    phase = (savepoint.get("status") or {}).get("phase")
    return phase in ACTIVE and "deletionTimestamp" not in savepoint["metadata"]


def pe_view(caches: Caches, item: Object) -> PeView:
    """Return what is known of an existing PE and its pods."""
    pods = [pod_view(pod) for pod in caches.pods_by_pe.get(key_of(item))]
    status = pe_status(item)
    reporter = status.runtime.pod_uid if status.runtime else ""  # runs, if the cache lags
    running = (pod.uid for pod in pods if pod.alive or (pod.uid == reporter and not pod.ended))
    earlier = any(pod.alive and pod.pe_uid != item["metadata"]["uid"] for pod in pods)
    return PeView.of(pe_spec(item), status, frozenset(running), orphaned=earlier)
