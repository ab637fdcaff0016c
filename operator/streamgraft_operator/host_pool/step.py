"""Which nodes a HostPool consists of. Pure."""

from collections.abc import Mapping

from streamgraft_common import names
from streamgraft_common.resources import HostPoolSpec

Labels = Mapping[str, str]


def members(spec: HostPoolSpec, nodes: Mapping[str, Labels], before: list[str]) -> list[str]:
    """Return the names of the pool's nodes, given all nodes with their labels.

    With a size, those that were members `before` stay, for PEs run there; then come others by name.
    """
    fitting = sorted(name for name, labels in nodes.items() if _fits(spec, name, labels))
    if spec.size is None:
        return fitting
    kept = [name for name in before if name in fitting]
    return sorted((kept + [name for name in fitting if name not in kept])[: spec.size])


def _fits(spec: HostPoolSpec, name: str, labels: Labels) -> bool:
    if spec.hosts is not None:
        return name in spec.hosts
    tagged = all(f"{names.LABEL_TAG}/{tag}" in labels for tag in spec.tags or ())
    selector = spec.node_selector or {}
    return tagged and all(labels.get(key) == value for key, value in selector.items())
