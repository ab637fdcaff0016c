"""From a Job to its topology: read the bundle, check the parameters, plan.

Nothing is kept but caches: the topology of a job is computed whenever it is needed.
"""

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
from streamgraft_operator.graph import Submission, Topology
from streamgraft_operator.settings import Settings

CACHED = 64


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
        bundle = await self._bundles.read(*key_of(job), spec.bundle)
        submission = Submission(
            namespace=job["metadata"]["namespace"],
            job=job["metadata"]["name"],
            uid=job["metadata"]["uid"],
            spec=spec,
            bundle=bundle,
            bootstrap_servers=self._settings.bootstrap_servers,
        )
        wanted = submission.widths(widths)
        generation = job["metadata"].get("generation")
        key = submission.uid, generation, bundle.digest, tuple(sorted(wanted.items()))
        topology = self._topologies.get(key)
        if topology is None:
            topology = self._topologies[key] = submission.plan(wanted)
            if len(self._topologies) > CACHED:
                self._topologies.popitem(last=False)
        return Expansion(bundle, topology, submission.resolved(topology))


def job_of(caches: Caches, item: Object) -> Object | None:
    """Return the Job that an object of ours belongs to by its label, if it is there."""
    namespace, _ = key_of(item)
    name = item["metadata"].get("labels", {}).get(names.LABEL_JOB, "")
    return caches.jobs.get((namespace, name))
