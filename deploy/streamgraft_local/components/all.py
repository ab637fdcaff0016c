"""The list of all components, in the order in which they are started."""

from streamgraft_local.components import controlplane, kafka, prometheus, streamgraft
from streamgraft_local.components.model import Component, Setting

PORTS = (
    "etcd",
    "etcd-peer",
    "apiserver",
    "controller-manager",
    "scheduler",
    "kafka",
    "kafka-controller",
    "prometheus",
    "operator",
    "adapter",
    "node-metrics",
)

STOP_ORDER = (
    ("node",),  # first, so that pods end while everything they need still runs
    ("operator", "adapter"),
    ("prometheus", "kafka"),
    ("kube-controller-manager", "kube-scheduler"),
    ("kube-apiserver",),
    ("etcd",),
)


def components(setting: Setting) -> dict[str, Component]:
    """Return all components by name."""
    found = [
        controlplane.etcd(setting),
        controlplane.apiserver(setting),
        controlplane.controller_manager(setting),
        controlplane.scheduler(setting),
        kafka.broker(setting),
        prometheus.prometheus(setting),
        streamgraft.node(setting),
        streamgraft.operator(setting),
        streamgraft.adapter(setting),
    ]
    return {component.name: component for component in found}
