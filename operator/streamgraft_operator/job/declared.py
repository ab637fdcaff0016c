"""The HostPools and Services that a job's application declares: created, replaced and deleted."""

from streamgraft_common import names
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import key_of
from streamgraft_operator import events, manifests
from streamgraft_operator.application.expansion import Expansion
from streamgraft_operator.context import Context
from streamgraft_operator.kit.caches import Collection
from streamgraft_operator.kit.coordinator import Coordinator, setting
from streamgraft_operator.kit.objects import content_of, is_owned_by
from streamgraft_operator.manifests.metadata import Owner

_POOL_FIELDS = ("job", "hosts", "tags", "nodeSelector", "size", "exclusive")


class DeclaredPlanter:
    """Brings them in line with the application. Objects of others that have their names are left
    alone, with an Event of the Job."""

    def __init__(self, context: Context) -> None:
        self._caches = context.caches
        self._write = context.write
        self._recorder = context.recorder

    async def plant(self, job: Object, owner: Owner, expansion: Expansion) -> None:
        """Create what is missing, bring up to date what is there, delete what is surplus."""
        adl, topology = expansion.bundle.adl, expansion.topology
        await self._plant_pools(job, owner, [manifests.host_pool(owner, d) for d in adl.host_pools])
        services = [manifests.declared_service(owner, topology, d) for d in adl.services]
        await self._plant_services(job, owner, services)

    async def _plant_pools(self, job: Object, owner: Owner, wanted: list[Object]) -> None:
        caches, write = self._caches, self._write.host_pools
        for manifest in wanted:
            if await self._own(job, owner, manifest, caches.host_pools, write):
                await write.update(key_of(manifest), setting(manifest, _POOL_FIELDS))
        keys = set(map(key_of, wanted))
        for item in caches.host_pools_by_job.get((owner.namespace, owner.name)):
            if key_of(item) not in keys and is_owned_by(item, owner.uid):
                await write.delete(item)

    async def _plant_services(self, job: Object, owner: Owner, wanted: list[Object]) -> None:
        caches, write = self._caches, self._write.services
        contents = {key_of(manifest): content_of(manifest) for manifest in wanted}
        for manifest in wanted:
            await self._own(job, owner, manifest, caches.services, write)
        for item in caches.services_by_job.get((owner.namespace, owner.name)):
            ours = names.LABEL_SERVICE in item["metadata"]["labels"] and is_owned_by(
                item, owner.uid
            )
            # One that changed comes anew once the watch tells that it is gone.
            if ours and content_of(item) != contents.get(key_of(item)):
                await write.delete(item)

    async def _own(
        self, job: Object, owner: Owner, manifest: Object, cache: Collection, write: Coordinator
    ) -> bool:
        """Return whether the object is there and the job's own; create it if it is missing."""
        existing = cache.get(key_of(manifest)) or await write.create(manifest)
        if is_owned_by(existing, owner.uid):
            return True
        if existing["metadata"].get("labels", {}).get(names.LABEL_JOB) == owner.name:
            await write.delete(existing)  # of the job that had this name before
        else:
            kind, name = manifest["kind"], manifest["metadata"]["name"]
            self._recorder.record(job, events.name_taken(kind, name))
        return False
