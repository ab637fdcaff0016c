"""What the operator is started with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from streamgraft_common import names
from streamgraft_common.access import SYSTEM_NAMESPACE
from streamgraft_common.resources import (
    CheckpointRepository,
    JobSpec,
    JobStatus,
    PullPolicy,
    TransportSecurity,
)


@dataclass(frozen=True)
class Settings:
    """Settings of the whole operator; a Job's own win where both exist."""

    bootstrap_servers: str
    checkpoint_volume: Mapping[str, Any]
    """Kubernetes volume source that all PEs share, as `{"persistentVolumeClaim": {…}}`."""
    image: str
    checkpoint_root: Path | None = None
    """Where the operator itself sees that volume, to remove checkpoints of deleted jobs."""
    pod_security: Literal["restricted", "privileged"] = "restricted"
    """Pod security standard that users' pod templates must keep to."""
    driver_starts: int | None = None
    """Drivers that a region may start at a time, those from warm pools not counted, where CPU is
    short: one takes a core and more for many seconds. None: any number."""
    own_namespace: str = SYSTEM_NAMESPACE
    """Where the operator keeps what is its own: its lease, and its certificate authority."""
    bundle_networks: tuple[str, ...] = ()
    """Private networks, as 10.1.0.0/16, from which bundles may be fetched; others are refused."""
    namespaces: tuple[str, ...] = ()
    """Namespaces to watch; none: all."""
    transport_security: TransportSecurity = field(default_factory=TransportSecurity)
    """Of jobs that name neither brokers nor transport security."""

    repository: CheckpointRepository | None = None
    """Where savepoints of jobs are kept besides that name no repository."""
    image_pull_secrets: tuple[str, ...] = ()
    """Secrets with the credentials of registries; each namespace with jobs has its own."""
    image_pull_policy: PullPolicy | None = None
    """When pods pull our image that say nothing of it. None: Kubernetes' own rule."""

    def security_of(self, job: JobSpec) -> TransportSecurity:
        """Return a job's transport security: its own, or that of our brokers."""
        if job.bootstrap_servers or "transport_security" in job.model_fields_set:
            return job.transport_security
        return self.transport_security

    def completed(self, job: JobSpec) -> JobSpec:
        """Return a job's spec with our transport security and repository where those hold."""
        update: dict[str, Any] = {"transport_security": self.security_of(job)}
        own = job.processing_element.checkpoint_repository or CheckpointRepository()
        if self.repository and not own.keeps_copies:
            kept = {name: getattr(self.repository, name) for name in ("copies", "s3", "redis")}
            repository = {"checkpoint_repository": own.model_copy(update=kept)}
            update["processing_element"] = job.processing_element.model_copy(update=repository)
        return job.model_copy(update=update)

    def image_of(self, status: JobStatus, metadata: Mapping[str, Any]) -> str:
        """Return the image of a job that names none.

        Another default of ours is not its concern before it is submitted again: a restart of its
        own accord would cost it seconds, and pods of several versions hand no state to each other.
        """
        known = (status.image_generation, status.image_submission) == submission_of(metadata)
        return status.image if status.image and known else self.image


def submission_of(metadata: Mapping[str, Any]) -> tuple[int, str]:
    """Return what tells a submission of a Job from the others: its generation, and when it was.

    The same spec keeps its generation, however often it is submitted.
    """
    annotations = metadata.get("annotations") or {}
    return metadata.get("generation", 0), annotations.get(names.ANNOTATION_SUBMITTED, "")
