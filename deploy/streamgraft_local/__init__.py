"""The embedded environment: a real control plane, Kafka, Prometheus and a process node.

    cluster = Cluster(ClusterSpec(name="default"))
    cluster.up()                      # idempotent: starts what is missing
    cluster.kubeconfig, cluster.bootstrap_servers, cluster.prometheus_url, cluster.adapter_url
    cluster.stop("kafka"); cluster.start("kafka")
    cluster.status(); cluster.down(); cluster.leftovers()

Everything lies in one folder per cluster and one cache for all of them (`paths`).
"""

from streamgraft_local.cluster import Cluster, ComponentStatus
from streamgraft_local.errors import ComponentError, LocalError, ToolError
from streamgraft_local.progress import Display, Phase, Step
from streamgraft_local.spec import ClusterSpec, ClusterState

__all__ = [
    "Cluster",
    "ClusterSpec",
    "ClusterState",
    "ComponentError",
    "ComponentStatus",
    "Display",
    "LocalError",
    "Phase",
    "Step",
    "ToolError",
]
