"""From a Job to its topology: read the bundle, check the parameters, plan.

Nothing is kept but caches: the topology of a job is computed whenever it is needed.
"""

import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from streamgraft_common import names
from streamgraft_common.bundle import Bundle
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import key_of
from streamgraft_common.resources import JobSpec
from streamgraft_operator.bundles import Bundles
from streamgraft_operator.caches import Caches
from streamgraft_operator.graph import GraphError, JobContext, Topology, plan
from streamgraft_operator.settings import Settings

CACHED = 64
_JOB_NAME = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")


@dataclass(frozen=True)
class Expansion:
    """A job's bundle and its plan for certain widths."""

    bundle: Bundle
    topology: Topology
    spec: JobSpec
    """The job's spec with settings of PEs as they are in the end: the job's image settings and
    each PE's share of the job's resources are in `processing_element`."""


class Expander:
    """Expands jobs."""

    def __init__(self, bundles: Bundles, settings: Settings) -> None:
        self._bundles = bundles
        self._settings = settings
        self._topologies: OrderedDict[tuple[object, ...], Topology] = OrderedDict()

    async def expand(self, job: Object, widths: Mapping[str, int]) -> Expansion:
        """Return the plan of a job; `widths` by region name, absent ones as the job begins.

        Widths of regions that the application no longer has are ignored.

        Raises BundleError or GraphError; both say what to do.
        """
        spec = JobSpec.model_validate(job["spec"])
        _check_name(job["metadata"]["name"])
        bundle = await self._bundles.read(*key_of(job), spec.bundle)
        initial = {name: region.width for name, region in spec.regions.items() if region.width}
        known = {region.name for region in bundle.adl.regions}
        wanted = initial | {name: width for name, width in widths.items() if name in known}
        key = (
            job["metadata"]["uid"],
            job["metadata"].get("generation"),
            bundle.digest,
            tuple(sorted(wanted.items())),
        )
        topology = self._topologies.get(key)
        if topology is None:
            context = self._context(job, spec, bundle, initial)
            topology = plan(bundle.adl, context, wanted)
            self._topologies[key] = topology
            if len(self._topologies) > CACHED:
                self._topologies.popitem(last=False)
        return Expansion(bundle, topology, _resolved(spec, topology))

    def _context(
        self, job: Object, spec: JobSpec, bundle: Bundle, first_widths: Mapping[str, int]
    ) -> JobContext:
        return JobContext(
            namespace=job["metadata"]["namespace"],
            job=job["metadata"]["name"],
            job_uid=job["metadata"]["uid"],
            bundle_digest=bundle.digest,
            bootstrap_servers=spec.bootstrap_servers or self._settings.bootstrap_servers,
            parameters=parameters(bundle, spec),
            fusion=spec.fusion,
            threading=spec.threading,
            settings=spec.processing_element,
            resources=spec.resources,
            first_widths=first_widths,
        )


def _resolved(spec: JobSpec, topology: Topology) -> JobSpec:
    given = topology.settings
    images = {
        name: getattr(given, name) or getattr(spec, name)
        for name in ("image", "image_pull_policy", "image_pull_secret")
    }
    return spec.model_copy(update={"processing_element": given.model_copy(update=images)})


def parameters(bundle: Bundle, spec: JobSpec) -> dict[str, str]:
    """Return the submission-time values. Raises GraphError for names the application lacks."""
    known = bundle.adl.parameters
    if unknown := sorted(spec.parameters.keys() - known.keys()):
        has = f"it has {', '.join(sorted(known))}" if known else "it has none"
        raise GraphError(f"the application has no parameter {', '.join(unknown)} ({has})")
    return {**known, **spec.parameters}


def _check_name(name: str) -> None:
    if len(name) > names.MAX_JOB_NAME or not _JOB_NAME.fullmatch(name):
        raise GraphError(
            f"job name {name!r} can't be used in names of topics and pods: choose at most"
            f" {names.MAX_JOB_NAME} lower-case letters, digits and '-', beginning with a letter"
        )


def job_of(caches: Caches, item: Object) -> Object | None:
    """Return the Job that an object of ours belongs to by its label, if it is there."""
    namespace, _ = key_of(item)
    name = item["metadata"].get("labels", {}).get(names.LABEL_JOB, "")
    return caches.jobs.get((namespace, name))
