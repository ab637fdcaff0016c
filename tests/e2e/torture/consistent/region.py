"""The consistent region of a job whose parts die: what it says, and what is asked of it."""

from tests.e2e.torture.job import TorturedJob
from tests.e2e.torture.patience import answered

from streamgraft_common import names
from streamgraft_common.resources import CONSISTENT_REGION, ConsistentRegionStatus


class Region:
    """A consistent region of a job."""

    def __init__(self, job: TorturedJob, name: str) -> None:
        self._client = job.client
        self._path = CONSISTENT_REGION.path(job.namespace, names.region_name(job.name, name))

    async def status(self) -> ConsistentRegionStatus:
        """Return its newest status."""
        found = await answered(lambda: self._client.get(self._path))
        return ConsistentRegionStatus.model_validate(found.get("status") or {})

    async def policy(self) -> str:
        """Return what has it go back by itself."""
        found = await answered(lambda: self._client.get(self._path))
        return str(found["spec"].get("rollBackOn", "never"))

    async def ask_for_cut(self) -> int:
        """Return the least number that the cut has which was asked for."""
        wanted = (await self.status()).sequence_id + 1
        await self._ask({"requested": wanted})
        return wanted

    async def ask_for_rollback(self) -> int:
        """Return the least number that the rollback has which was asked for."""
        wanted = (await self.status()).rollback_id + 1
        await self._ask({"rollbackRequested": wanted})
        return wanted

    async def why(self) -> str:
        """Return what it says of itself."""
        status = await self.status()
        said = [f"consistent region {status.state}, cut {status.sequence_id}"]
        said += [f"{item.type} {item.status} {item.message}" for item in status.conditions]
        return "; ".join(said)

    async def _ask(self, spec: dict[str, int]) -> None:
        await answered(lambda: self._client.patch(self._path, {"spec": spec}))
