"""kubelet, kube-proxy, the cluster's DNS and the program that holds a pod's namespaces.

Only `make test-node` needs them, so no user pays for them.
"""

from pathlib import Path

from streamgraft_local.paths import cache_folder
from streamgraft_local.progress import Report
from streamgraft_local.toolchain.cache import Cache
from streamgraft_local.toolchain.golang import Module, build

_FOLDER = Path(__file__).parent
_NODE = Module(
    "nodeprograms",
    _FOLDER / "programs",
    link="-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3",
    note="kubelet and kube-proxy from Go modules; about 7 minutes on two cores",
)
_DNS = Module("coredns", _FOLDER / "dns", note="CoreDNS from Go modules; 1 minute")
_PAUSE = Module("pause", _FOLDER / "pause", note="what holds a pod's namespaces; seconds")


def node_programs(report: Report) -> Path:
    """Return the binary that is kubelet and kube-proxy. Raises ToolError."""
    return build(Cache(cache_folder(), report), _NODE)


def dns(report: Report) -> Path:
    """Return CoreDNS. Raises ToolError."""
    return build(Cache(cache_folder(), report), _DNS)


def pause(report: Report) -> Path:
    """Return the binary of the pause image. Raises ToolError."""
    return build(Cache(cache_folder(), report), _PAUSE)
