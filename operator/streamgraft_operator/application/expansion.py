"""From a Job to its topology: read the bundle, check the parameters, expand.

Nothing is kept but caches: the topology of a job is computed whenever it is needed, for all but
the job controller from the version that was accepted last.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from streamgraft_common import names
from streamgraft_common.bundle import Bundle
from streamgraft_common.content import Content
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import key_of
from streamgraft_common.resources import JobSpec, SavedStage
from streamgraft_operator import manifests
from streamgraft_operator.application.bundles import Bundles
from streamgraft_operator.application.versions import Version, Versions
from streamgraft_operator.graph import GraphError, Submission, Topology, with_settings
from streamgraft_operator.graph.sizes import check_sizes
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

    def thought_out(self) -> Self:
        """Return the same, with all known that takes time to find out."""
        _ = self.stages, self.from_job, self.region_contents, self.content_id
        return self

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

    @cached_property
    def stages(self) -> Sequence[SavedStage]:
        """The stages as a savepoint remembers them, upstream first."""
        return saved_stages(self.topology, self.bundle.adl)

    @property
    def _plans(self) -> list[dict[str, Any]]:
        """What the tables of state were made from: edits are judged by what is noted of it."""
        return [plan.to_wire() for stage in self.stages for plan in (stage.plans or {}).values()]


class Expander:
    """Expands jobs."""

    def __init__(self, bundles: Bundles, versions: Versions, settings: Settings) -> None:
        self._bundles = bundles
        self._versions = versions
        self._settings = settings
        self._found: OrderedDict[tuple[object, ...], Expansion | GraphError] = OrderedDict()
        self._planning = asyncio.Lock()

    async def expand(self, job: Object, widths: Mapping[str, int]) -> Expansion:
        """Return the expansion of what a job runs: of the version that was accepted last.

        `widths` by region name, absent ones as the job begins; those of regions that the
        application no longer has are ignored. Raises BundleError or GraphError; both say what to
        do.
        """
        version = await self._versions.accepted(job)
        return await self._expand(job, version or await self._submitted(job), widths)

    async def expand_submitted(self, job: Object, widths: Mapping[str, int]) -> Expansion:
        """Return the expansion of what a Job asks for, which may have to be refused.

        Otherwise as `expand`.
        """
        return await self._expand(job, await self._submitted(job), widths)

    async def _submitted(self, job: Object) -> Version:
        metadata, spec = job["metadata"], job_spec(job)
        bundle = await self._bundles.read(job, spec.bundle)
        image = self._settings.image_of(job_status(job), metadata)
        return Version(metadata.get("generation", 0), job["spec"], spec, image, bundle)

    async def _expand(self, job: Object, version: Version, widths: Mapping[str, int]) -> Expansion:
        metadata, status = job["metadata"], job_status(job)
        restored, partitions = status.restored, status.partitions
        uid, settings = metadata["uid"], self._settings
        known_by = uid, version.generation, version.bundle.digest, restored, version.image
        known_by = *known_by, *sorted(partitions.items()), *sorted(status.dropped_stages.items())
        known_by = *known_by, *status.repeating
        asked = *known_by, *sorted(widths.items())
        if asked not in self._found:
            # One at a time: threads share an interpreter, and callers often ask for the same.
            async with self._planning:
                if asked not in self._found:
                    submission = self._submission(job, version)
                    wanted = submission.widths(widths)
                    planned = *known_by, *sorted(wanted.items())
                    if planned not in self._found:
                        # It may take a second: meanwhile the lease is to be renewed.
                        work = asyncio.to_thread(_planned, version, submission, wanted, settings)
                        self._keep(planned, await work)
                    self._keep(asked, self._found[planned])
        found = self._found[asked]
        if isinstance(found, GraphError):
            raise GraphError(str(found))  # a new one, since each collects its traceback
        return found

    def _submission(self, job: Object, version: Version) -> Submission:
        metadata, status = job["metadata"], job_status(job)
        return Submission(
            namespace=metadata["namespace"],
            job=metadata["name"],
            uid=metadata["uid"],
            spec=self._settings.completed(version.spec).with_image(version.image),
            bundle=version.bundle,
            bootstrap_servers=self._settings.bootstrap_servers,
            restored=status.restored,
            source_partitions=status.partitions,
            dropped_stages=status.dropped_stages,
            repeating=frozenset(status.repeating),
        )

    def _keep(self, key: tuple[object, ...], found: Expansion | GraphError) -> None:
        self._found[key] = found
        while len(self._found) > CACHED:
            self._found.popitem(last=False)


def _planned(
    version: Version, submission: Submission, widths: Mapping[str, int], settings: Settings
) -> Expansion | GraphError:
    """Return the expansion with all that takes time, or why there is none."""
    try:
        topology = submission.topology(widths)
        expansion = Expansion(version, topology, submission.resolved(topology), settings)
        check_sizes(topology, expansion.stages)
    except GraphError as error:
        return error.with_traceback(None)
    return expansion.thought_out()


def job_of(caches: Caches, item: Object) -> Object | None:
    """Return the Job that an object of ours belongs to by its label, if it is there."""
    namespace, _ = key_of(item)
    name = item["metadata"].get("labels", {}).get(names.LABEL_JOB, "")
    return caches.jobs.get((namespace, name))
