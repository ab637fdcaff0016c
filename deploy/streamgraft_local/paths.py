"""Where things lie: the cache, the state of one cluster, and the files of the repository."""

import os
from dataclasses import dataclass
from pathlib import Path

_PACKAGED = Path(__file__).resolve().with_name("deploy")
DEPLOY = _PACKAGED if _PACKAGED.is_dir() else Path(__file__).resolve().parents[1]
"""Manifests, resource definitions, chart and Go modules: of the wheel, or the repository's own."""


def cache_folder() -> Path:
    """Return the folder of everything built or fetched: $STREAMGRAFT_CACHE or the user's cache."""
    if chosen := os.environ.get("STREAMGRAFT_CACHE"):
        return Path(chosen).expanduser().resolve()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "streamgraft"


def state_folder() -> Path:
    """Return the folder with one folder per cluster: $STREAMGRAFT_HOME or the user's state."""
    if chosen := os.environ.get("STREAMGRAFT_HOME"):
        return Path(chosen).expanduser().resolve()
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "streamgraft"


@dataclass(frozen=True)
class Home:
    """The folder of one cluster."""

    root: Path

    @property
    def state_file(self) -> Path:
        """Name, id, ports and tools of the cluster."""
        return self.root / "cluster.json"

    @property
    def pki(self) -> Path:
        """Keys and certificates."""
        return self.root / "pki"

    @property
    def logs(self) -> Path:
        """One log per component; pods log below `node/`."""
        return self.root / "logs"

    @property
    def run(self) -> Path:
        """One process record per component."""
        return self.root / "run"

    @property
    def config(self) -> Path:
        """Generated configuration files."""
        return self.root / "config"

    @property
    def data(self) -> Path:
        """What etcd, Kafka, Prometheus and the process node keep, a folder each."""
        return self.root / "data"

    @property
    def checkpoints(self) -> Path:
        """The volume that all processing elements share."""
        return self.root / "checkpoints"

    def kubeconfig(self, identity: str) -> Path:
        """Return the kubeconfig of `admin` or of a component."""
        return self.root / f"{identity}.kubeconfig"

    def log(self, component: str) -> Path:
        """Return the log of a component."""
        return self.logs / f"{component}.log"

    def record(self, component: str) -> Path:
        """Return the process record of a component."""
        return self.run / f"{component}.json"

    def create(self) -> None:
        """Create all folders, private to the user: they hold keys."""
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        for folder in (self.logs, self.run, self.config, self.data, self.checkpoints):
            folder.mkdir(exist_ok=True)
