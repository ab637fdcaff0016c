"""Which stages stand still for a savepoint."""

from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key
from streamgraft_operator.kit.caches import Caches
from streamgraft_operator.kit.parsed import savepoint_status
from streamgraft_operator.savepoint.step import ACTIVE


def parked_stages(caches: Caches, job: Key) -> frozenset[str]:
    """Return the stages of a job that hold no shards now, by name."""
    return frozenset(
        name
        for item in caches.savepoints_by_job.get(job)
        if is_active(item)
        for name in savepoint_status(item).parked
    )


def is_active(savepoint: Object) -> bool:
    """Return whether a savepoint keeps stages from running."""
    active = savepoint_status(savepoint).phase in ACTIVE
    return active and "deletionTimestamp" not in savepoint["metadata"]
