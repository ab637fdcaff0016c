"""What runs of a job, read from the cluster, and what the API server would make of its edit."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from streamgraft.cli._cluster import MANAGER, Cluster
from streamgraft.cli._installation import default_image
from streamgraft.cli._restored import outlived
from streamgraft_common import names
from streamgraft_common.adl import Adl
from streamgraft_common.kube.client import Object
from streamgraft_common.pe_metadata import PeMetadata
from streamgraft_common.resources import (
    JOB,
    PARALLEL_REGION,
    PROCESSING_ELEMENT,
    JobSpec,
    JobStatus,
    ParallelRegionSpec,
    PodSettings,
    ProcessingElementSpec,
    SavedStage,
)
from streamgraft_operator.graph import Submission


@dataclass(frozen=True)
class RunningPe:
    """One PE that exists: its place in the graph, and what its pod is made from."""

    metadata: PeMetadata
    settings: PodSettings
    """Those that it has from its job."""


@dataclass(frozen=True)
class RunningJob:
    """A job that exists."""

    uid: str
    spec: JobSpec
    pes: dict[int, RunningPe]
    """By id. One whose ConfigMap is missing does not count: its pod never began."""
    regions: dict[str, ParallelRegionSpec]
    """By region name."""
    stages: tuple[SavedStage, ...] = ()
    """Those of the graph that was submitted last."""
    topics: tuple[str, ...] = ()
    """What the job has made in Kafka so far."""
    partitions: Mapping[str, int] = field(default_factory=dict)
    """Those of source topics that slots depend on, as the operator has counted them."""
    dropped_stages: Mapping[str, int] = field(default_factory=dict)
    """How often edits dropped a stage of this name."""
    repeating: frozenset[str] = frozenset()
    """Operators that send, or once sent, records again (Job.status.repeating)."""
    image: str | None = None
    """What the operator would give its pods behind an edit, where the job names none."""

    @property
    def operators(self) -> frozenset[str]:
        """The operators of the graph that was submitted last."""
        return frozenset(name for stage in self.stages for name in stage.operators)

    @property
    def widths(self) -> dict[str, int]:
        """The widths that are wanted now; resubmission keeps them."""
        return {name: region.width for name, region in self.regions.items()}

    @property
    def default_servers(self) -> str | None:
        """Brokers that the operator chose for the job; None if the job or nobody names any."""
        if self.spec.bootstrap_servers:
            return None
        inputs = [port for pe in self.pes.values() for port in pe.metadata.inputs]
        return next((port.bootstrap_servers for port in inputs if not port.external), None)

    def placed(self, submission: Submission) -> Submission:
        """Return a submission as the operator expands it for this job."""
        return replace(
            submission,
            uid=self.uid,
            bootstrap_servers=self.default_servers or submission.bootstrap_servers,
            source_partitions=self.partitions,
            dropped_stages=self.dropped_stages,
            repeating=self.repeating,
        )


async def running(cluster: Cluster, job: str) -> RunningJob | None:
    """Return the job as it is, or None if there is none."""
    item = await cluster.client.find(JOB.path(cluster.namespace, job))
    if item is None:
        return None
    config_maps = {
        config_map["metadata"]["name"]: config_map.get("data", {})
        for config_map in await cluster.of_job(cluster.core("configmaps"), job)
    }
    pes = await cluster.of_job(PROCESSING_ELEMENT.path(cluster.namespace), job)
    regions = await cluster.of_job(PARALLEL_REGION.path(cluster.namespace), job)
    status = JobStatus.model_validate(item.get("status") or {})
    return RunningJob(
        uid=item["metadata"]["uid"],
        spec=JobSpec.model_validate(item["spec"]),
        partitions=status.partitions,
        dropped_stages=status.dropped_stages,
        repeating=frozenset(status.repeating),
        image=await default_image(cluster) or status.image,
        pes={
            pe["spec"]["peId"]: _pe(pe, config_maps[pe["metadata"]["name"]])
            for pe in pes
            if names.PE_METADATA_KEY in config_maps.get(pe["metadata"]["name"], {})
        },
        regions={
            region["spec"]["region"]: ParallelRegionSpec.model_validate(region["spec"])
            for region in regions
        },
        stages=_stages(config_maps.get(names.job_config_map(job), {})),
        topics=tuple(status.made_in_kafka.topics) if status.made_in_kafka else (),
    )


async def edited(cluster: Cluster, job: str, spec: dict[str, Any], adl: Adl) -> JobSpec:
    """Return the spec that `submit` would lead to: applied by the API server, without storing it.

    So what others set in the Job stays, and a spec that is not valid is refused. Regions of a
    savepoint go that the application, `adl`, lacks.
    """
    body = JOB.manifest(job, cluster.namespace, spec)
    path = JOB.path(cluster.namespace, job)
    return spec_of(await cluster.client.apply(path, body, MANAGER, dryRun="All"), adl)


def spec_of(answer: Object, adl: Adl) -> JobSpec:
    """Return what a Job asks for that the API server was let try, as `edited` does."""
    found, gone = JobSpec.model_validate(answer["spec"]), outlived(answer, adl)
    regions = {name: region for name, region in found.regions.items() if name not in gone}
    return found.model_copy(update={"regions": regions})


def _stages(data: dict[str, str]) -> tuple[SavedStage, ...]:
    return tuple(map(SavedStage.model_validate, json.loads(data.get(names.STAGES_KEY, "[]"))))


def _pe(item: Object, data: dict[str, str]) -> RunningPe:
    return RunningPe(
        PeMetadata.model_validate(json.loads(data[names.PE_METADATA_KEY])),
        ProcessingElementSpec.model_validate(item["spec"]).inherited,
    )
