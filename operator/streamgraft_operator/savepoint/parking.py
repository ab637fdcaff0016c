"""Which stages stand still for a savepoint."""

from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key
from streamgraft_common.timestamps import from_rfc3339
from streamgraft_operator.kit.caches import Caches
from streamgraft_operator.kit.parsed import savepoint_status
from streamgraft_operator.kit.rollbacks import is_going
from streamgraft_operator.savepoint.step import ACTIVE


def parked_stages(caches: Caches, job: Key) -> frozenset[str]:
    """Return the stages of a job that hold no shards now, by name."""
    return frozenset(
        name
        for item in caches.savepoints_by_job.get(job)
        if is_active(item)
        for name in savepoint_status(item).parked
    )


def holds_back(caches: Caches, job: Key, region: str) -> bool:
    """Return whether a savepoint of stages of a region is under way, be they parked or not: it ends
    with the owners that it began with."""
    return any(
        stage.region == region
        for item in caches.savepoints_by_job.get(job)
        if is_active(item)
        for stage in savepoint_status(item).stages
    )


def parked_until(caches: Caches, job: Key) -> float:
    """Return when stages of the job last went on behind a savepoint (Unix time), 0 if never."""
    found = map(savepoint_status, caches.savepoints_by_job.get(job))
    over = (item.completed_at for item in found if item.started_at or item.drained_at)
    return max((from_rfc3339(at) for at in over if at), default=0.0)


class HeldBack:
    """When savepoints were last seen to hold a region back: of those that are deleted behind their
    end, as cuts that failed and rollbacks are, or amid it, nothing else tells."""

    def __init__(self) -> None:
        self._seen: dict[Key, float] = {}

    def until(self, region: Key, now: float, *, held: bool) -> float:
        """Return up to when a region was held back: now if it is, 0 if it never was."""
        if held:
            self._seen[region] = now
        return self._seen.get(region, 0.0)

    def forget(self, region: Key) -> None:
        """Drop what is known of a region that is gone."""
        self._seen.pop(region, None)


def is_active(savepoint: Object) -> bool:
    """Return whether a savepoint keeps stages from running."""
    return savepoint_status(savepoint).phase in ACTIVE and not is_going(savepoint)
