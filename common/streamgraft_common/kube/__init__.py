"""The Kubernetes API as plain dicts: configuration, client, and list/watch stores.

Why not the generated client: importing it costs 2.7 s of CPU in every process here (a PE, the CLI),
and its model classes cost milliseconds per object. See docs/decisions/0002-kubernetes-client.md.
"""

from streamgraft_common.kube.client import KubeClient, MergePatch
from streamgraft_common.kube.config import KubeConfig, account_config, load_config
from streamgraft_common.kube.errors import (
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    Unreachable,
)
from streamgraft_common.kube.store import Store

__all__ = [
    "ApiError",
    "Conflict",
    "Forbidden",
    "Gone",
    "Invalid",
    "KubeClient",
    "KubeConfig",
    "MergePatch",
    "NotFound",
    "Store",
    "Unreachable",
    "account_config",
    "load_config",
]
