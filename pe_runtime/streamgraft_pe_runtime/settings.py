"""What the pod's environment says: docs/develop/contracts.md, "The pod of a PE"."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from streamgraft_common import names
from streamgraft_common.pe_metadata import PeMetadata
from streamgraft_common.resources import CheckpointRepository

RESTRICTED_PROPERTIES = "STREAMGRAFT_RESTRICTED_PROPERTIES"
"""The variable with the folder of the Secret of that name."""


@dataclass(frozen=True)
class Settings:
    """Where this pod is, how its driver is set up, and where its files are.

    Which PE it runs is not known here: the PE names its pod.
    """

    namespace: str
    job: str
    pod: str
    pod_uid: str
    bind_address: str
    bundle: Path
    checkpoint_root: Path
    slots: int
    spark_conf: Mapping[str, str]
    """Spark settings of application and job."""
    restricted_properties: Path | None = None
    repository: CheckpointRepository | None = None
    """Where savepoints are kept besides."""
    repository_secret: Path | None = None
    """Its credentials."""
    copies: Path | None = None
    """The volume of that name, if it is one."""
    profiles: Path | None = None
    """Where to record profiles."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Settings":
        """Return the settings. Raises KeyError with the name of a variable that is missing."""
        return cls(
            namespace=environment["STREAMGRAFT_NAMESPACE"],
            job=environment["STREAMGRAFT_JOB"],
            pod=environment["STREAMGRAFT_POD"],
            pod_uid=environment["STREAMGRAFT_POD_UID"],
            bind_address=environment["STREAMGRAFT_BIND_ADDRESS"],
            bundle=Path(environment["STREAMGRAFT_BUNDLE"]),
            checkpoint_root=Path(environment["STREAMGRAFT_CHECKPOINT_ROOT"]),
            restricted_properties=_folder(environment, RESTRICTED_PROPERTIES),
            repository=_repository(environment.get("STREAMGRAFT_REPOSITORY")),
            repository_secret=_folder(environment, "STREAMGRAFT_REPOSITORY_SECRET"),
            copies=_folder(environment, "STREAMGRAFT_COPIES"),
            profiles=_folder(environment, "STREAMGRAFT_PROFILES"),
            slots=int(environment["STREAMGRAFT_SLOTS"]),
            spark_conf=json.loads(environment["STREAMGRAFT_SPARK_CONF"]),
        )


def consumer_group(metadata: PeMetadata) -> str:
    """Return the consumer group under which the stage publishes its progress."""
    return names.consumer_group(metadata.namespace, metadata.job, metadata.stage_name)


def _folder(environment: Mapping[str, str], variable: str) -> Path | None:
    value = environment.get(variable)
    return Path(value) if value else None


def _repository(text: str | None) -> CheckpointRepository | None:
    return CheckpointRepository.model_validate_json(text) if text else None
