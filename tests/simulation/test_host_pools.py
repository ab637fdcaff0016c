"""A host pool with a size follows what happens to its nodes: it has one that takes pods."""

from dataclasses import replace

from tests.simulation.applications import POOL, Submission
from tests.simulation.faults import submit
from tests.simulation.world import World

from streamgraft_common.kinds import NODE
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import HOST_POOL

POOLED = replace(Submission("job", stages=1, max_width=2, width=2), pooled=True)


def change(world: World, node: str, patch: Object, tail: str = "") -> None:
    """Write to a node, and give the operator time to see it."""
    path = NODE.path(name=node) + tail
    world.server.request("PATCH", path, patch, {}, "merge-patch")
    world.run(2.0)


def members(world: World) -> list[str]:
    """Return the nodes of the pool."""
    pool = world.get(HOST_POOL, POOL)
    assert pool
    nodes: list[str] = pool["status"]["nodes"]
    return nodes


def test_nodes_that_are_cordoned_or_lost_are_left_for_others() -> None:
    world = World(1)
    with world.surroundings():
        submit(world, POOLED)
        world.operators.start()
        world.run(100)
        assert members(world) == ["node-1"]
        change(world, "node-1", {"spec": {"unschedulable": True}})
        assert members(world) == ["node-2"]
        change(world, "node-1", {"spec": {"unschedulable": None}})
        assert members(world) == ["node-2"]
        lost = {"conditions": [{"type": "Ready", "status": "Unknown"}]}
        change(world, "node-2", {"status": lost}, "/status")
        assert members(world) == ["node-1"]
