"""The ParallelRegion resource of a planned region."""

from typing import Any

from streamgraft_common import names
from streamgraft_common.adl import Region
from streamgraft_common.resources import (
    PARALLEL_REGION,
    SAVEPOINT,
    JobSpec,
    ParallelRegionSpec,
    RegionOverride,
    RegionStage,
    SavepointSpec,
)
from streamgraft_common.resources.parallel_region import DEFAULT_DEADLINE_SECONDS
from streamgraft_operator.graph import PlannedRegion, Topology
from streamgraft_operator.manifests.metadata import Owner, digest, metadata


def region_content_id(topology: Topology, region: PlannedRegion, settings_id: str) -> str:
    """Return the content id of a region: what its PEs are made from, whatever the width.

    Channel 0 stands for all, which differ from it in ids only. `settings_id` covers what the job
    says of pods.
    """
    first = [str(pe.content) for pe in topology.stages if pe.region == region.region.name]
    return digest([first, region.first_pe_id, region.stages, settings_id])


def parallel_region(
    owner: Owner, job: JobSpec, topology: Topology, region: PlannedRegion, content_id: str
) -> dict[str, Any]:
    """Return the resource with its first width; later widths are the user's."""
    described = region.region
    settings = job.regions.get(described.name) or RegionOverride()
    spec = ParallelRegionSpec(
        job=owner.name,
        region=described.name,
        width=region.width,
        max_width=described.max_width,
        key=described.key,
        change_deadline_seconds=settings.change_deadline_seconds or DEFAULT_DEADLINE_SECONDS,
        strategy=settings.strategy or "handover",
        autoscaling=described.autoscaling,
        upstream=list(region.upstream),
        other_inputs=region.other_inputs,
        stages=_stages(topology, described),
    )
    manifest = PARALLEL_REGION.manifest(region.name, owner.namespace, spec)
    labels = {names.LABEL_REGION: described.name}
    return {**manifest, "metadata": metadata(owner, region.name, labels, content_id)}


def _stages(topology: Topology, region: Region) -> list[RegionStage]:
    """Return what signals of the region need: each stage with the topics that it reads."""
    found = (pe for pe in topology.stages if pe.region == region.name)
    stages = sorted(found, key=lambda pe: pe.stage)
    weights = region.autoscaling.utilization_weights if region.autoscaling else {}
    return [
        RegionStage(
            topics=sorted({port.topic for port in pe.metadata.inputs}),
            weight=max(weights.get(operator, 1.0) for operator in pe.metadata.operators),
            real_time=pe.metadata.real_time,
        )
        for pe in stages
    ]


def width_savepoint(
    owner: Owner, region: PlannedRegion, name: str, timeout_seconds: int
) -> dict[str, Any]:
    """Return the savepoint of a width change: it goes with the job."""
    described = region.region
    spec = SavepointSpec(
        job=owner.name,
        region=described.name,
        repository=False,  # nothing starts from it, and the region stands still
        timeout_seconds=timeout_seconds,
    )
    manifest = SAVEPOINT.manifest(name, owner.namespace, spec)
    return {**manifest, "metadata": metadata(owner, name, {names.LABEL_REGION: described.name})}
