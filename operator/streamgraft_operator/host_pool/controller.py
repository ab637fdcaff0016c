"""The controller of HostPools: keeps the list of the nodes that belong to each."""

import time
from collections.abc import Iterable, Sequence

from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, key_of
from streamgraft_common.resources import HostPoolStatus
from streamgraft_operator.context import Context
from streamgraft_operator.host_pool.step import Labels, NodeView, members
from streamgraft_operator.kit.conditions import State, merged
from streamgraft_operator.kit.control_loop import Controller, Outcome, Watch, desired_changed
from streamgraft_operator.kit.coordinator import Patch
from streamgraft_operator.kit.nodes import takes_pods
from streamgraft_operator.kit.objects import own_key
from streamgraft_operator.kit.parsed import host_pool_spec, host_pool_status


class HostPoolController(Controller):
    """Nodes come, go, change their labels and are cordoned; pods that run stay where they are."""

    name = "host-pool"

    def __init__(self, context: Context) -> None:
        self._pools = context.caches.host_pools
        self._nodes = context.caches.nodes
        self._write = context.write.host_pools

    @property
    def watches(self) -> Sequence[Watch]:
        """HostPools and nodes."""
        return (
            Watch(self._pools, own_key, desired_changed),
            Watch(self._nodes, self._all_pools, _membership_changed),
        )

    async def reconcile(self, key: Key) -> Outcome:
        """Report the nodes of a pool."""
        if self._pools.get(key) is None:
            return None
        nodes = {
            node["metadata"]["name"]: NodeView(_labels(node), takes_pods(node))
            for node in self._nodes.items()
        }

        def command(item: Object) -> Patch | None:
            old = host_pool_status(item)
            generation = item["metadata"]["generation"]
            found = members(host_pool_spec(item), nodes, old.nodes)
            conditions = merged(old.conditions, [_ready(found)], time.time(), generation)
            new = HostPoolStatus(nodes=found, observed_generation=generation, conditions=conditions)
            return None if new == old else {"status": new.to_wire()}

        await self._write.update(key, command, status=True)
        return None

    def _all_pools(self, _: Object) -> Iterable[Key]:
        return [key_of(pool) for pool in self._pools.items()]


def _ready(nodes: list[str]) -> State:
    if nodes:
        return State("Ready", "True", "NodesFound", f"{len(nodes)} nodes belong to it")
    return State("Ready", "False", "NoNodes", "no node belongs to it: label one, or edit the spec")


def _membership_changed(old: Object | None, new: Object | None) -> bool:
    if old is None or new is None:
        return True
    return (_labels(old), takes_pods(old)) != (_labels(new), takes_pods(new))


def _labels(node: Object) -> Labels:
    labels: Labels = node["metadata"].get("labels") or {}
    return labels
