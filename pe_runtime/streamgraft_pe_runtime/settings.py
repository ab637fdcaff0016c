"""What the pod's environment says: docs/contracts.md, "The pod of a PE"."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from streamgraft_common import names
from streamgraft_common.adl import Adl
from streamgraft_common.bundle import read_bundle
from streamgraft_common.pe_metadata import PeMetadata


@dataclass(frozen=True)
class Settings:
    """Where this PE is, and where its files are."""

    namespace: str
    job: str
    pe: str
    pod: str
    launch_count: int
    bind_address: str
    pe_folder: Path
    bundle: Path
    checkpoint_root: Path
    restricted_properties: Path | None = None
    profiles: Path | None = None
    """Where to record profiles."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Settings":
        """Return the settings. Raises KeyError with the name of a variable that is missing."""
        return cls(
            namespace=environment["STREAMGRAFT_NAMESPACE"],
            job=environment["STREAMGRAFT_JOB"],
            pe=environment["STREAMGRAFT_PE"],
            pod=environment["STREAMGRAFT_POD"],
            launch_count=int(environment["STREAMGRAFT_LAUNCH"]),
            bind_address=environment["STREAMGRAFT_BIND_ADDRESS"],
            pe_folder=Path(environment["STREAMGRAFT_PE_DIR"]),
            bundle=Path(environment["STREAMGRAFT_BUNDLE"]),
            checkpoint_root=Path(environment["STREAMGRAFT_CHECKPOINT_ROOT"]),
            restricted_properties=_folder(environment, "STREAMGRAFT_RESTRICTED_PROPERTIES"),
            profiles=_folder(environment, "STREAMGRAFT_PROFILES"),
        )

    def metadata(self) -> PeMetadata:
        """Read the graph metadata of this PE."""
        return PeMetadata.model_validate_json((self.pe_folder / names.PE_METADATA_KEY).read_text())

    def adl(self) -> Adl:
        """Read the application's description. Raises BundleError."""
        return read_bundle(self.bundle.read_bytes()).adl


def consumer_group(metadata: PeMetadata) -> str:
    """Return the consumer group under which the stage publishes its progress."""
    return names.consumer_group(metadata.namespace, metadata.job, metadata.stage_name)


def _folder(environment: Mapping[str, str], variable: str) -> Path | None:
    value = environment.get(variable)
    return Path(value) if value else None
