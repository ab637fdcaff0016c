"""A job as it is submitted: what its topology is computed from. Pure.

The operator plans with it, and `streamgraft plan` shows what the operator would do.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from streamgraft_common import names
from streamgraft_common.bundle import Bundle
from streamgraft_common.edits import SAVE
from streamgraft_common.own_conf import conf_errors
from streamgraft_common.pe_metadata import BundlePlace
from streamgraft_common.resources import JobSpec
from streamgraft_operator.graph.logical import logical_model
from streamgraft_operator.graph.model import GraphError, JobContext, PlannedRegion, Topology
from streamgraft_operator.graph.pipeline import region_widths, topology_of
from streamgraft_operator.graph.sizing import Means, Sizing, size
from streamgraft_operator.graph.transforms import without_dead_operators

_JOB_NAME = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")


@dataclass(frozen=True)
class Submission:
    """A Job and its bundle."""

    namespace: str
    job: str
    uid: str
    spec: JobSpec
    bundle: Bundle
    bootstrap_servers: str
    """Brokers of jobs that name none."""
    restored: bool = False
    """Whether the job has left its savepoint behind: what comes new into it starts empty."""
    source_partitions: Mapping[str, int] = field(default_factory=dict)
    """Partitions of outside topics, as the job's status says."""
    dropped_stages: Mapping[str, int] = field(default_factory=dict)
    """How often edits dropped a stage of this name, as the job's status says."""
    repeating: frozenset[str] = frozenset()
    """Operators whose records may come again, as the job's status says."""

    @property
    def first_widths(self) -> dict[str, int]:
        """Widths with which regions begin, where they are not the application's."""
        return {name: region.width for name, region in self.spec.regions.items() if region.width}

    def widths(self, present: Mapping[str, int]) -> dict[str, int]:
        """Return the widths of the topology, by region name: the present ones, else the first ones.

        Widths of regions that the application no longer has are ignored.
        """
        known = {region.name for region in self.bundle.adl.regions}
        kept = {name: width for name, width in present.items() if name in known}
        return self.first_widths | kept

    def topology(self, widths: Mapping[str, int]) -> Topology:
        """Return the topology for such widths. Raises GraphError."""
        _check_name(self.job)
        _check_conf(self.spec.processing_element.spark_conf)
        origin, mounted = self.spec.savepoint, self.spec.bundle.mounted(self.job)
        context = JobContext(
            namespace=self.namespace,
            job=self.job,
            job_uid=self.uid,
            bundle_digest=self.bundle.digest,
            bundle=BundlePlace(config_map=mounted.name, key=mounted.key) if mounted else None,
            bootstrap_servers=self.spec.bootstrap_servers or self.bootstrap_servers,
            tls=self.spec.transport_security.encrypted,
            parameters=self._parameters(),
            fusion=self.spec.fusion,
            threading=self.spec.threading,
            settings=self.spec.processing_element,
            resources=self.spec.resources,
            savepoint=origin.name if origin and not self.restored else None,
            first_widths=self.first_widths,
            fail_on_data_loss=self.spec.fail_on_data_loss,
            create_topics=self.spec.create_topics,
            source_partitions=self.source_partitions,
            dropped_stages=self.dropped_stages,
            repeating=self.repeating,
        )
        return topology_of(self.bundle.adl, context, widths)

    def resolved(self, topology: Topology) -> JobSpec:
        """Return the spec with settings of PEs as they are in the end: the job's image settings
        and each PE's share of the job's resources are in `processing_element`."""
        given = topology.settings
        images = {
            name: getattr(given, name) or getattr(self.spec, name)
            for name in ("image", "image_pull_policy", "image_pull_secret")
        }
        return self.spec.model_copy(update={"processing_element": given.model_copy(update=images)})

    def sizing(self) -> Sizing:
        """Return how many PEs suit the application. Raises GraphError."""
        model = without_dead_operators(logical_model(self.bundle.adl))
        widths = region_widths(self.bundle.adl, self.first_widths)
        means = Means(self.spec.processing_element, self.spec.resources, widths)
        return size(model, self.spec.fusion, means)

    def _parameters(self) -> dict[str, str]:
        """Return the submission-time values."""
        known, given = self.bundle.adl.parameters, self.spec.parameters
        if unknown := sorted(given.keys() - known.keys()):
            has = f"it has {', '.join(sorted(known))}" if known else "it has none"
            raise GraphError(f"the application has no parameter {', '.join(unknown)} ({has})")
        return {**known, **given}


def check_region(max_width: int, key: list[str], planned: PlannedRegion) -> None:
    """Raise GraphError if a region that has these can't become what is planned."""
    region = planned.region
    if (max_width, key) != (region.max_width, region.key):
        raise GraphError(
            f"region {region.name} has max_width {max_width} and key {key};"
            f" they can't become {region.max_width} and {region.key}, since state is"
            f" partitioned by them: for another max_width {SAVE} and restore it with this"
            " application, or cancel the job and submit it anew, or rename the region"
        )


def _check_conf(conf: Mapping[str, str]) -> None:
    for name, remedy in conf_errors(conf):
        raise GraphError(f"processingElement.sparkConf has {name}={conf[name]}: {remedy}")


def _check_name(name: str) -> None:
    if len(name) > names.MAX_JOB_NAME or not _JOB_NAME.fullmatch(name):
        raise GraphError(
            f"job name {name!r} can't be used in names of topics and pods: choose at most"
            f" {names.MAX_JOB_NAME} lower-case letters, digits and '-', beginning with a letter"
        )
