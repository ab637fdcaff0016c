"""From a Job to its topology: read the bundle, check the parameters, expand.

Nothing is kept but caches: the topology of a job is computed whenever it is needed, for all but
the job controller from the version that was accepted last.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from streamgraft_common import names
from streamgraft_common.bundle import Bundle
from streamgraft_common.content import Content
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import key_of
from streamgraft_common.resources import JobSpec
from streamgraft_operator import manifests
from streamgraft_operator.application.bundles import Bundles
from streamgraft_operator.application.versions import Version, Versions
from streamgraft_operator.graph import Submission, Topology, with_settings
from streamgraft_operator.graph.stages import saved_stages
from streamgraft_operator.kit.caches import Caches
from streamgraft_operator.kit.parsed import job_spec, job_status
from streamgraft_operator.manifests.metadata import digest
from streamgraft_operator.settings import Settings

CACHED = 64


@dataclass(frozen=True)
class Expansion:
    """A job's bundle and its topology at certain widths."""

    version: Version
    """What it is made of."""
    topology: Topology
    spec: JobSpec
    """The job's spec with settings of PEs as they are in the end: the job's image settings and
    each PE's share of the job's resources are in `processing_element`."""
    settings: Settings
    """The operator's own."""

    @property
    def bundle(self) -> Bundle:
        """The bundle, of which the topology is."""
        return self.version.bundle

    @cached_property
    def settings_id(self) -> str:
        """The hash of all that job and operator settings put into a pod."""
        return manifests.settings_id(self.spec, self.settings)

    @cached_property
    def checkpoints(self) -> dict[str, Any]:
        """The volume that the checkpoints are on."""
        return manifests.checkpoint_volume(self.spec, self.settings)

    @cached_property
    def contents(self) -> Mapping[int, Content]:
        """The contents of all PEs, by id."""
        return {pe.pe_id: with_settings(pe.content, self.settings_id) for pe in self.topology.pes}

    @cached_property
    def from_job(self) -> Mapping[int, dict[str, Any]]:
        """The fields of all PEs' specs that follow the job, by id."""
        return {pe.pe_id: manifests.from_job(self.spec, pe) for pe in self.topology.pes}

    @cached_property
    def region_contents(self) -> Mapping[str, str]:
        """The content ids of all regions, by their names in the application."""
        return {
            planned.region.name: manifests.region_content_id(
                self.topology, planned, self.settings_id
            )
            for planned in self.topology.regions
        }

    @cached_property
    def content_id(self) -> str:
        """The hash of all that the job consists of."""
        pes = [str(content) for content in self.contents.values()]
        topics = [repr(topic) for topic in self.topology.topics]
        labels = {name: label.to_wire() for name, label in self.topology.port_labels.items()}
        return digest([pes, topics, labels, *self._plans])

    @property
    def _plans(self) -> list[dict[str, Any]]:
        """What the tables of state were made from: edits are judged by what is noted of it."""
        stages = saved_stages(self.topology, self.bundle.adl)
        return [plan.to_wire() for stage in stages for plan in (stage.plans or {}).values()]


class Expander:
    """Expands jobs."""

    def __init__(self, bundles: Bundles, versions: Versions, settings: Settings) -> None:
        self._bundles = bundles
        self._versions = versions
        self._settings = settings
        self._expansions: OrderedDict[tuple[object, ...], Expansion] = OrderedDict()

    async def expand(self, job: Object, widths: Mapping[str, int]) -> Expansion:
        """Return the expansion of what a job runs: of the version that was accepted last.

        `widths` by region name, absent ones as the job begins; those of regions that the
        application no longer has are ignored. Raises BundleError or GraphError; both say what to
        do.
        """
        version = await self._versions.accepted(job)
        return self._expand(job, version or await self._submitted(job), widths)

    async def expand_submitted(self, job: Object, widths: Mapping[str, int]) -> Expansion:
        """Return the expansion of what a Job asks for, which may have to be refused.

        Otherwise as `expand`.
        """
        return self._expand(job, await self._submitted(job), widths)

    async def _submitted(self, job: Object) -> Version:
        metadata, spec = job["metadata"], job_spec(job)
        bundle = await self._bundles.read(*key_of(job), spec.bundle)
        image = self._settings.image_of(job_status(job), metadata)
        return Version(metadata.get("generation", 0), job["spec"], spec, image, bundle)

    def _expand(self, job: Object, version: Version, widths: Mapping[str, int]) -> Expansion:
        metadata, status = job["metadata"], job_status(job)
        restored, partitions = status.restored, status.partitions
        uid, bundle, image = metadata["uid"], version.bundle, version.image
        known_by = uid, version.generation, bundle.digest, restored, image
        known_by = *known_by, *sorted(partitions.items()), *sorted(status.dropped_stages.items())
        asked = *known_by, *sorted(widths.items())
        if (known := self._expansions.get(asked)) is not None:
            return known
        submission = Submission(
            namespace=metadata["namespace"],
            job=metadata["name"],
            uid=metadata["uid"],
            spec=self._settings.completed(version.spec).with_image(image),
            bundle=bundle,
            bootstrap_servers=self._settings.bootstrap_servers,
            restored=restored,
            source_partitions=partitions,
            dropped_stages=status.dropped_stages,
        )
        wanted = submission.widths(widths)
        planned = *known_by, *sorted(wanted.items())
        if (expansion := self._expansions.get(planned)) is None:
            topology = submission.topology(wanted)
            resolved = submission.resolved(topology)
            expansion = Expansion(version, topology, resolved, self._settings)
        self._expansions[planned] = self._expansions[asked] = expansion
        while len(self._expansions) > CACHED:
            self._expansions.popitem(last=False)
        return expansion


def job_of(caches: Caches, item: Object) -> Object | None:
    """Return the Job that an object of ours belongs to by its label, if it is there."""
    namespace, _ = key_of(item)
    name = item["metadata"].get("labels", {}).get(names.LABEL_JOB, "")
    return caches.jobs.get((namespace, name))
