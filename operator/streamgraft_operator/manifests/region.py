"""The ParallelRegion resource of a planned region."""

from typing import Any

from streamgraft_common import names
from streamgraft_common.resources import PARALLEL_REGION, ParallelRegionSpec
from streamgraft_operator.graph import PlannedRegion, Topology
from streamgraft_operator.manifests.metadata import Owner, digest, metadata


def region_content_id(topology: Topology, region: PlannedRegion, settings_id: str) -> str:
    """Return the content id of a region: what its PEs are made from, whatever the width.

    Channel 0 stands for all, which differ from it in ids only. `settings_id` covers what the job
    says of pods.
    """
    first = [
        pe.content_id for pe in topology.pes if pe.region == region.region.name and pe.channel == 0
    ]
    return digest([first, region.first_pe_id, region.stages, settings_id])


def parallel_region(owner: Owner, region: PlannedRegion, content_id: str) -> dict[str, Any]:
    """Return the resource with its first width; later widths are the user's."""
    plan = region.region
    spec = ParallelRegionSpec(
        job=owner.name,
        region=plan.name,
        width=region.width,
        max_width=plan.max_width,
        key=plan.key,
        autoscaling=plan.autoscaling,
    )
    manifest = PARALLEL_REGION.manifest(region.name, owner.namespace, spec)
    labels = {names.LABEL_REGION: plan.name}
    return {**manifest, "metadata": metadata(owner, region.name, labels, content_id)}
