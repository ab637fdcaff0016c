"""What a user may choose about a cluster, and what is remembered of a running one."""

import json
import os
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field

from streamgraft_local.paths import Home, state_folder
from streamgraft_local.tools import Tools


class ClusterSpec(BaseModel):
    """A cluster to be. Clusters of different names run side by side."""

    model_config = ConfigDict(frozen=True)

    name: str = Field(default="default", pattern=r"^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$")
    base: Path | None = None
    """Folder below which the cluster's folder lies; None: $STREAMGRAFT_HOME or the user's state."""
    hpa_sync_seconds: int = 5
    """How often the HorizontalPodAutoscaler looks; Kubernetes' default is 15."""
    scrape_seconds: int = 2
    """How often Prometheus scrapes."""
    metrics_window_seconds: int = 60
    """Over which the metrics adapter takes rates: five scrapes at least."""
    kafka_heap_mb: int = 256
    image: str = "streamgraft/pe:local"
    """Image name that pods of PEs carry; the process node runs their command whatever it is."""

    @property
    def home(self) -> Home:
        """The cluster's folder."""
        return Home((self.base or state_folder()) / self.name)


class ClusterState(BaseModel):
    """`cluster.json`: what stays the same from one `up` to the next."""

    model_config = ConfigDict(frozen=True)

    spec: ClusterSpec
    """As at the last start."""
    id: str
    """Marks every process of the cluster ($STREAMGRAFT_CLUSTER_ID)."""
    ports: dict[str, int]
    tools: Tools
    addresses: dict[str, str] = {}
    """URLs and bootstrap servers, for people and scripts."""

    @classmethod
    def load(cls, file: Path) -> Self | None:
        """Return the remembered state; None if there is none or it is of another version."""
        try:
            return cls.model_validate(json.loads(file.read_text()))
        except (OSError, ValueError):
            return None

    @staticmethod
    def id_in(file: Path) -> str | None:
        """Return the id that is remembered, by whatever release; None if there is none."""
        try:
            found = json.loads(file.read_text())["id"]
        except (OSError, ValueError, LookupError, TypeError):
            return None
        return found if isinstance(found, str) and found else None

    def save(self, file: Path) -> None:
        """Write the state, all or nothing."""
        fresh = file.with_suffix(".new")
        fresh.write_text(self.model_dump_json(indent=2) + "\n")
        os.replace(fresh, file)
