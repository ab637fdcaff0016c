"""What a submission would make, and what it would do to what runs."""

from collections import Counter
from dataclasses import dataclass

from pydantic.alias_generators import to_camel

from streamgraft.cli._plan_cpu import CpuUse
from streamgraft.cli._plan_state import RunningJob, RunningPe
from streamgraft_common.content import Change, Content
from streamgraft_common.edits import Outcome, outcomes
from streamgraft_common.pe_metadata import PeMetadata
from streamgraft_common.resources import JobSpec, PodSettings
from streamgraft_operator import manifests
from streamgraft_operator.graph import (
    PlannedRegion,
    Sizing,
    Submission,
    changed_fields,
    check_region,
    content_of,
    diff,
)
from streamgraft_operator.graph.sizes import check_sizes
from streamgraft_operator.graph.stages import saved_stages
from streamgraft_operator.manifests.pod_settings import settings_content
from streamgraft_operator.settings import Settings

OPERATORS_OWN = Settings(bootstrap_servers="", checkpoint_volume={}, image="")
"""Stands for the operator's own settings, on both sides: a submission does not change them."""


@dataclass(frozen=True)
class PePlan:
    """One PE as it would be; as it is, if it goes."""

    metadata: PeMetadata
    change: Change
    differing: tuple[str, ...] = ()
    """What differs from the PE that runs: fields of its graph metadata and of its pod settings."""


@dataclass(frozen=True)
class Outlook:
    """What a submission would lead to."""

    submission: Submission
    exists: bool
    """Whether the job exists, so that changes are changes of something."""
    operators: frozenset[str]
    """Those that run, as far as the job has been planned before."""
    pes: tuple[PePlan, ...]
    regions: tuple[PlannedRegion, ...]
    settings: PodSettings
    """Of all PEs, with each one's share of the job's resources."""
    sizing: Sizing
    outcomes: tuple[Outcome, ...] = ()
    """What becomes of state and positions, if the job exists."""
    cpu: CpuUse | None = None
    """What the cluster and the job use; None: not known."""

    @property
    def counts(self) -> Counter[Change]:
        """How many PEs each change concerns."""
        return Counter(pe.change for pe in self.pes)

    @property
    def restarts(self) -> bool:
        """Whether a PE that runs would be started anew."""
        return self.counts[Change.RESTART] > 0


def outlook(submission: Submission, job: RunningJob | None) -> Outlook:
    """Return what the operator would do. Raises GraphError if it would refuse the submission."""
    topology = submission.topology(submission.widths(job.widths if job else {}))
    for region in topology.regions:
        if job and (existing := job.regions.get(region.region.name)):
            check_region(existing.max_width, existing.key, region)
    stages = saved_stages(topology, submission.bundle.adl)
    check_sizes(topology, stages)
    fates: list[Outcome] = []
    if job and job.stages:
        fates = outcomes(job.stages, stages, job.topics)
    spec = submission.resolved(topology)
    if job and job.image:
        spec = spec.with_image(job.image)
    settings_id = manifests.settings_id(spec, OPERATORS_OWN)
    new = {pe.pe_id: pe.metadata for pe in topology.pes}
    changes = diff(
        {pe_id: _content(job.spec, pe) for pe_id, pe in job.pes.items()} if job else {},
        {pe_id: content_of(metadata, settings_id) for pe_id, metadata in new.items()},
    )
    old = job.pes if job else {}
    return Outlook(
        submission=submission,
        exists=job is not None,
        operators=job.operators if job else frozenset(),
        pes=tuple(
            PePlan(
                new.get(pe_id) or old[pe_id].metadata,
                change,
                _differing(job.spec, old[pe_id], spec, new[pe_id])
                if job and pe_id in old and pe_id in new
                else (),
            )
            for pe_id, change in changes.items()
        ),
        regions=topology.regions,
        settings=spec.processing_element.for_pods(),
        sizing=submission.sizing(),
        outcomes=tuple(fates),
    )


def _content(spec: JobSpec, pe: RunningPe) -> Content:
    return content_of(pe.metadata, manifests.settings_id(_with(spec, pe), OPERATORS_OWN))


def _with(spec: JobSpec, pe: RunningPe) -> JobSpec:
    """Return a job's spec with the settings that a PE has from it."""
    given = {name: getattr(pe.settings, name) for name in PodSettings.model_fields}
    settings = spec.processing_element.model_copy(update=given)
    return spec.model_copy(update={"processing_element": settings})


def _differing(
    before: JobSpec, pe: RunningPe, after: JobSpec, metadata: PeMetadata
) -> tuple[str, ...]:
    old, new = settings_content(pe.settings), settings_content(after.processing_element.for_pods())
    names = {*changed_fields(pe.metadata, metadata)}
    names |= {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    # Which bundle it is shows in bundle_digest: `submit` sets the source's own, `plan` does not.
    places = [spec.bundle.model_copy(update={"digest": None}) for spec in (before, after)]
    if places[0] != places[1]:
        names.add("bundle")
    stores = [spec.processing_element.checkpoint_repository for spec in (before, after)]
    if stores[0] != stores[1]:
        names.add("checkpoint_repository")
    return tuple(to_camel(name) for name in sorted(names))
