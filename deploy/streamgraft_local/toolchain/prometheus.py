"""Prometheus: the user's if it is new enough, else built from its Go module."""

import re
import shutil
from pathlib import Path

from streamgraft_local.errors import ToolError
from streamgraft_local.paths import DEPLOY
from streamgraft_local.toolchain.cache import Cache
from streamgraft_local.toolchain.commands import run
from streamgraft_local.toolchain.golang import Module, build

OLDEST = (2, 45)

MODULE = Module(
    "prometheus",
    DEPLOY / "prometheus",
    "github.com/prometheus/prometheus/cmd/prometheus",
    # Of two dozen ways to discover targets only the one for Kubernetes.
    tags="remove_all_sd,enable_kubernetes_sd",
    note="Prometheus from its Go module; 2 to 4 minutes on two cores",
)


def version(output: str) -> tuple[int, int] | None:
    """Return (major, minor) from what `prometheus --version` prints."""
    found = re.search(r"prometheus, version (\d+)\.(\d+)", output)
    return (int(found.group(1)), int(found.group(2))) if found else None


def find(cache: Cache) -> Path:
    """Return a Prometheus binary. Raises ToolError if there is no way to one."""
    if found := shutil.which("prometheus"):
        try:
            known = version(run("looking for Prometheus", (found, "--version")))
        except ToolError:
            known = None
        if known is not None and known >= OLDEST:
            return Path(found)
    return build(cache, MODULE)
