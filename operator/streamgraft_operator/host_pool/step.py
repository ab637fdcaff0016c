"""Which nodes a HostPool consists of. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from streamgraft_common import names
from streamgraft_common.resources import HostPoolSpec

Labels = Mapping[str, str]


@dataclass(frozen=True)
class NodeView:
    """A node, as far as pools depend on it."""

    labels: Labels
    takes_pods: bool = True
    """Whether it is neither cordoned nor lost."""


def members(spec: HostPoolSpec, nodes: Mapping[str, NodeView], before: list[str]) -> list[str]:
    """Return the names of the pool's nodes, given all nodes.

    With a size, nodes that take no pods come last, for PEs are placed on members only. Of the rest
    those that were members `before` stay, for PEs run there; then come others by name.
    """
    fitting = sorted(name for name, node in nodes.items() if _fits(spec, name, node.labels))
    if spec.size is None:
        return fitting
    fitting.sort(key=lambda name: (not nodes[name].takes_pods, name not in before))
    return sorted(fitting[: spec.size])


def _fits(spec: HostPoolSpec, name: str, labels: Labels) -> bool:
    if not spec.selects:
        return False
    if spec.hosts is not None:
        return name in spec.hosts
    tagged = all(f"{names.LABEL_TAG}/{tag}" in labels for tag in spec.tags or ())
    selector = spec.node_selector or {}
    return tagged and all(labels.get(key) == value for key, value in selector.items())
