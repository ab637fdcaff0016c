"""What is common to all components."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from streamgraft_local.paths import Home
from streamgraft_local.probes import Probe
from streamgraft_local.spec import ClusterSpec
from streamgraft_local.tools import Tools


@dataclass(frozen=True)
class Setting:
    """Everything that command lines and configuration files are made of."""

    spec: ClusterSpec
    home: Home
    ports: Mapping[str, int]
    tools: Tools

    def url(self, port: str, scheme: str = "http") -> str:
        """Return the loopback URL of a port by name."""
        return f"{scheme}://127.0.0.1:{self.ports[port]}"

    def pki(self, name: str) -> Path:
        """Return a file of the PKI."""
        return self.home.pki / name

    def kubeconfig(self, identity: str) -> str:
        """Return the path of an identity's kubeconfig."""
        return str(self.home.kubeconfig(identity))

    def folder(self, name: str) -> Path:
        """Return the data folder of a component."""
        return self.home.data / name


@dataclass(frozen=True)
class Component:
    """One process of the cluster."""

    name: str
    command: tuple[str, ...]
    probe: Probe
    needs: tuple[str, ...] = ()
    """Steps that must have ended before it is started."""
    environment: Mapping[str, str] = field(default_factory=dict)
    prepare: Callable[[], None] | None = None
    """Writes configuration and formats storage; runs before every start."""
    ready_seconds: float = 90.0
    """How long it may take until it serves, on a busy machine."""
    grace_seconds: float = 10.0
    """How long it may take to end after SIGTERM."""


def flags(values: Mapping[str, object]) -> tuple[str, ...]:
    """Return `--name=value` for each, booleans in lower case."""
    return tuple(
        f"--{name}={str(value).lower() if isinstance(value, bool) else value}"
        for name, value in values.items()
    )
