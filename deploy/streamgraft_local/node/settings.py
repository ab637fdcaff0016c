"""What one node process is started with."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from streamgraft_local.node.metrics_api import MetricsEndpoint

_INHERITED = ("HOME", "LANG", "LC_ALL", "TZ", "USER", "STREAMGRAFT_CLUSTER_ID")
"""What a process can't well do without, and the mark by which `streamgraft down` finds it."""


@dataclass(frozen=True)
class NodeSettings:
    """Name, folder and capacity of a node, and the variables that stand for its images."""

    name: str
    home: Path
    client_ca: Path
    """Authority of the clients that may read logs."""
    image_variables: Mapping[str, str]
    capacity: Mapping[str, str]
    """Resources by name; for the scheduler only, nothing enforces them."""
    metrics: MetricsEndpoint | None = None
    """Where metrics.k8s.io is served; None: nowhere, and nothing is measured."""

    @property
    def pods_folder(self) -> Path:
        """One folder per pod."""
        return self.home / "pods"

    @property
    def ended_folder(self) -> Path:
        """Logs of the last pods that are gone."""
        return self.home / "ended"

    @property
    def claims_folder(self) -> Path:
        """One folder per persistent volume claim."""
        return self.home / "claims"


def base_variables(settings: NodeSettings) -> dict[str, str]:
    """Return what every container gets before its own environment.

    `python` is the node's own interpreter: it stands for the one in an image.
    """
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return inherited | {"PATH": path} | dict(settings.image_variables)
