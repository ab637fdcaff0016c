"""The controller of the shards of PEs outside of regions: theirs, but for a savepoint.

Regions have a conductor for that.
"""

from collections.abc import Iterable, Sequence

from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, key_of
from streamgraft_operator.context import Context
from streamgraft_operator.kit.control_loop import Controller, Outcome, Watch, desired_changed
from streamgraft_operator.kit.objects import own_key, saved_job
from streamgraft_operator.kit.parsed import pe_spec
from streamgraft_operator.pe import commands
from streamgraft_operator.savepoint.parking import parked_stages


class ParkingController(Controller):
    """Takes the one shard of a PE away while a savepoint has its stage stand still."""

    name = "parking"

    def __init__(self, context: Context) -> None:
        self._context = context
        self._caches = context.caches

    @property
    def watches(self) -> Sequence[Watch]:
        """PEs, and savepoints of their jobs."""
        return (
            Watch(self._caches.processing_elements, own_key, desired_changed),
            Watch(self._caches.savepoints, self._pes_of),
        )

    async def reconcile(self, key: Key) -> Outcome:
        """Give a PE its shard, or take it away."""
        item = self._caches.processing_elements.get(key)
        job = self._context.living_job_of(item) if item else None
        if item is None or job is None or (spec := pe_spec(item)).region:
            return None
        parked = spec.stage_name in parked_stages(self._caches, key_of(job))
        wanted = () if parked else (0,)
        seen = frozenset(spec.shards)
        await commands.assign(
            self._context.write.processing_elements, key, seen, wanted, spec.epoch
        )
        return None

    def _pes_of(self, savepoint: Object) -> Iterable[Key]:
        return [
            key_of(item)
            for item in self._caches.processing_elements_by_job.get(saved_job(savepoint))
            if not pe_spec(item).region
        ]
