"""The regions of a job as resources: created and deleted, what users set of them left alone."""

from collections.abc import Iterable

from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, key_of
from streamgraft_common.resources import ParallelRegionSpec
from streamgraft_operator import manifests
from streamgraft_operator.application.expansion import Expansion
from streamgraft_operator.context import Context
from streamgraft_operator.graph import Topology, check_region
from streamgraft_operator.kit.coordinator import Command, Patch, setting, updating
from streamgraft_operator.kit.objects import content_of, is_owned_by
from streamgraft_operator.kit.parsed import savepoint_spec
from streamgraft_operator.kit.rollbacks import is_half_back
from streamgraft_operator.kit.taken import check_name
from streamgraft_operator.manifests.metadata import Owner

FROM_JOB = (
    "autoscaling",
    "changeDeadlineSeconds",
    "strategy",
    "upstream",
    "otherInputs",
    "stages",
)
"""Fields of a region's spec that follow application and job."""
FROM_APPLICATION = (
    "operators",
    "trigger",
    "periodSeconds",
    "drainTimeoutSeconds",
    "retainedCuts",
    "repository",
    "rollBackOn",
    "maxRollbacks",
)
"""Fields of a consistent region's spec that follow the application."""


class RegionPlanter:
    """Creates and deletes the ParallelRegions of a job. It wakes those that may not sleep any
    more, and changes no width otherwise."""

    def __init__(self, context: Context) -> None:
        self._caches = context.caches
        self._write = context.write

    def check(self, key: Key, topology: Topology) -> None:
        """Raise GraphError if an existing region can't become what is planned."""
        for planned in topology.regions:
            existing = self._caches.regions.get((key[0], planned.name))
            if existing is not None:
                spec = existing["spec"]
                check_region(spec["maxWidth"], spec["key"], planned)

    async def plant(self, owner: Owner, expansion: Expansion) -> None:
        """Create regions that are missing, move on their content ids, delete surplus ones. Raises
        NameTaken."""
        topology = expansion.topology
        for planned in topology.regions:
            content_id = expansion.region_contents[planned.region.name]
            manifest = manifests.parallel_region(
                owner, expansion.spec, topology, planned, content_id
            )
            key = owner.namespace, planned.name
            found = self._caches.regions.get(key) or await self._write.regions.create(manifest)
            check_name("ParallelRegion", found, owner.name, owner.uid)
            await self._write.regions.update(key, _region_command(manifest))
        wanted = {planned.name for planned in topology.regions}
        for item in self._caches.regions_by_job.get((owner.namespace, owner.name)):
            if item["metadata"]["name"] not in wanted:
                await self._write.regions.delete(item)


def _region_command(manifest: Object) -> Command:
    metadata = manifest["metadata"]
    wanted = {field: manifest["spec"].get(field) for field in FROM_JOB}
    may_sleep = ParallelRegionSpec.model_validate(manifest["spec"]).may_sleep

    def command(item: Object) -> Patch | None:
        spec = updating(item["spec"], wanted)
        if content_of(item) == content_of(manifest) and not spec:
            return None
        wakes = item["spec"]["width"] == 0 and not may_sleep
        return {
            "metadata": {"labels": metadata["labels"], "annotations": metadata["annotations"]},
            "spec": {**spec, **({"width": 1} if wakes else {})},
        }

    return command


class ConsistentRegionPlanter:
    """Creates and deletes the ConsistentRegions of a job, as its application has them."""

    def __init__(self, context: Context) -> None:
        self._caches = context.caches
        self._write = context.write.consistent_regions
        self._write_savepoints = context.write.savepoints

    async def plant(self, owner: Owner, expansion: Expansion) -> None:
        """Create regions that are missing, bring others up to date, delete surplus ones, with their
        cuts. Raises NameTaken."""
        wanted = set()
        for region in expansion.bundle.adl.consistent_regions:
            manifest = manifests.consistent_region(owner, region)
            key = key_of(manifest)
            wanted.add(key)
            existing = self._caches.consistent_regions.get(key)
            if existing is None:
                existing = await self._write.create(manifest)
            check_name("ConsistentRegion", existing, owner.name, owner.uid)
            if not is_owned_by(existing, owner.uid):  # of the job that had this name before
                await self._write.delete(existing)
                continue
            await self._write.update(key, setting(manifest, FROM_APPLICATION))
        for item in self._caches.consistent_regions_by_job.get((owner.namespace, owner.name)):
            if key_of(item) not in wanted and is_owned_by(item, owner.uid):
                await self._write.delete(item)
        named = {region.name for region in expansion.bundle.adl.consistent_regions}
        savepoints = self._caches.savepoints_by_job.get((owner.namespace, owner.name))
        needed = _needed(savepoints)
        for savepoint in savepoints:
            region_name = savepoint_spec(savepoint).consistent_region
            surplus = region_name is not None and region_name not in named
            spared = savepoint["metadata"]["name"] in needed
            if surplus and not spared and is_owned_by(savepoint, owner.uid):
                await self._write_savepoints.delete(savepoint)


def _needed(savepoints: Iterable[Object]) -> set[str]:
    """Return rollbacks that put copies in the place of checkpoints, and the cuts that they go to:
    without them the region would stay half rolled back."""
    going_back = [item for item in savepoints if is_half_back(item)]
    cuts = {cut for item in going_back if (cut := savepoint_spec(item).rolls_back_to)}
    return cuts | {item["metadata"]["name"] for item in going_back}
