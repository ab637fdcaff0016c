"""Brings the resources of PEs in line with a topology: what is missing is created, what changed
is replaced, what is equal is not touched."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial

from streamgraft_common import names
from streamgraft_common.content import Content
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, key_of
from streamgraft_operator import manifests
from streamgraft_operator.application.expansion import Expansion
from streamgraft_operator.graph import PlannedPe
from streamgraft_operator.kit.caches import Caches
from streamgraft_operator.kit.config_maps import replace_config_map
from streamgraft_operator.kit.coordinator import updating
from streamgraft_operator.kit.coordinators import Coordinators
from streamgraft_operator.kit.objects import content_of
from streamgraft_operator.kit.parsed import pe_spec
from streamgraft_operator.kit.taken import check_name, is_of_job
from streamgraft_operator.kit.together import together
from streamgraft_operator.manifests.metadata import Owner
from streamgraft_operator.pe import commands

PARALLEL_WRITES = 16

Start = tuple[Iterable[int], int]
"""Shards and epoch with which a PE is created."""


def contents_of(pes: Iterable[Object]) -> dict[int, Content]:
    """Return the contents of existing PEs, by id."""
    return {pe_spec(item).pe_id: Content.parse(content_of(item) or "") for item in pes}


def same_place(item: Object, pe: PlannedPe) -> bool:
    """Return whether an existing PE of that name has the place in the graph that is planned."""
    spec = pe_spec(item)
    return (spec.stage_name, spec.region, spec.channel, spec.stage) == (
        pe.stage_name,
        pe.region,
        pe.channel,
        pe.stage,
    )


class Grafter:
    """Writes ConfigMaps, Services and ProcessingElements of planned PEs."""

    def __init__(self, caches: Caches, write: Coordinators) -> None:
        self._caches = caches
        self._write = write

    async def graft(
        self,
        owner: Owner,
        expansion: Expansion,
        pes: Sequence[PlannedPe],
        start: Callable[[PlannedPe], Start],
    ) -> None:
        """Make PEs of an expansion exist as planned. `start` says how a new PE begins.

        A PE whose place in the graph changed is deleted; it comes anew when that is done. Raises
        NameTaken.
        """
        different = [pe for pe in pes if not self._is_there(owner.namespace, expansion, pe)]
        if not different:
            return
        limit = asyncio.Semaphore(PARALLEL_WRITES)

        async def one(pe: PlannedPe) -> None:
            async with limit:
                await self._graft(owner, expansion, pe, start(pe))

        await together(map(one, different))

    def surplus(
        self, job: Key, wanted: Collection[str], concerns: Callable[[str | None], bool]
    ) -> list[Key]:
        """Return the PEs of a job that are not wanted, even if just their ConfigMap is left.

        `concerns` tells whether to look at a region; None is the outside of all.
        """
        caches = self._caches
        indexes = (
            caches.processing_elements_by_job,
            caches.services_by_job,
            caches.config_maps_by_job,
        )
        return sorted(
            {
                key_of(item)
                for index in indexes
                for item in index.get(job)
                if item["metadata"]["name"] not in wanted
                and names.LABEL_PE in (labels := item["metadata"]["labels"])
                and concerns(labels.get(names.LABEL_REGION))
            }
        )

    async def prune(self, owner: Owner, pes: Iterable[Key]) -> None:
        """Delete PEs that are no longer wanted, with their ConfigMaps and Services.

        Their pods go with them (pod conductor). What is not the job's stays.
        """
        caches, write = self._caches, self._write
        for key in pes:
            for cache, coordinator in (
                (caches.processing_elements, write.processing_elements),
                (caches.services, write.services),
                (caches.config_maps, write.config_maps),
            ):
                item = cache.get(key)
                if item is None or not is_of_job(item, owner.name, owner.uid):
                    continue
                if "deletionTimestamp" not in item["metadata"]:
                    await coordinator.delete(item)

    def _is_there(self, namespace: str, expansion: Expansion, pe: PlannedPe) -> bool:
        """Return whether everything of a PE is as planned, so that nothing need be made."""
        key = namespace, pe.name
        item = self._caches.processing_elements.get(key)
        if item is None or self._caches.services.get(key) is None:
            return False
        wanted, config_map = str(expansion.contents[pe.pe_id]), self._caches.config_maps.get(key)
        if content_of(item) != wanted or not _is_written(config_map, pe, wanted):
            return False
        return same_place(item, pe) and not updating(item["spec"], expansion.from_job[pe.pe_id])

    async def _graft(self, owner: Owner, expansion: Expansion, pe: PlannedPe, start: Start) -> None:
        key, content_id = (owner.namespace, pe.name), str(expansion.contents[pe.pe_id])
        existing = self._caches.processing_elements.get(key)
        check_name("ProcessingElement", existing, owner.name, owner.uid)
        if existing and not same_place(existing, pe):
            await self.prune(owner, [key])
            return
        config_map = manifests.pe_config_map(owner, pe, content_id)
        stays = partial(_is_written, pe=pe, content_id=content_id)
        await replace_config_map(self._caches, self._write, config_map, stays)
        service = self._caches.services.get(key)
        if service is None:
            service = await self._write.services.create(manifests.service(owner, pe))
        check_name("Service", service, owner.name, owner.uid)
        if existing is None:
            manifest = manifests.processing_element(owner, expansion.spec, pe, content_id, *start)
            await self._write.processing_elements.create(manifest)
        else:
            await commands.regenerate(
                self._write.processing_elements,
                key,
                content_id,
                owner.generation_id,
                expansion.from_job[pe.pe_id],
            )


def _is_written(config_map: Object | None, pe: PlannedPe, content_id: str) -> bool:
    """Return whether a PE's ConfigMap says what is planned.

    The savepoint that its job began from is no part of the content: nothing that runs is concerned
    when it goes. A pod that starts later must not find it any more.
    """
    if config_map is None or content_of(config_map) != content_id:
        return False
    said = config_map["metadata"]["annotations"].get(names.ANNOTATION_SAVEPOINT, "")
    return bool(said == (pe.metadata.savepoint or ""))
