"""A PE that finds no room on any node gets that of the warm pool."""

from tests.simulation.applications import NAMESPACE, Submission
from tests.simulation.faults import submit
from tests.simulation.savepoint_faults import is_healthy
from tests.simulation.world import World

from streamgraft_common import names
from streamgraft_common.kinds import POD
from streamgraft_common.kube.client import Object


def warm(world: World) -> list[str]:
    """Return the pods that wait for a PE."""
    pods = [pod["metadata"] for pod in world.objects(POD)]
    return [pod["name"] for pod in pods if names.LABEL_POOL in pod["labels"]]


def schedule(world: World, condition: Object, node: str | None) -> None:
    """Have the scheduler say something of a PE's pod, and give it a node or none."""
    (pe,) = (pod for pod in world.objects(POD) if pod["metadata"]["name"] == "job-0-1")
    pod = POD.path(NAMESPACE, pe["metadata"]["name"])
    world.server.request("PATCH", pod, {"spec": {"nodeName": node}}, {}, "merge-patch")
    path = f"{pod}/status"
    conditions = [
        {"type": "Ready", "status": "True"},
        {"type": "PodScheduled", **condition},
    ]
    world.server.request("PATCH", path, {"status": {"conditions": conditions}}, {}, "merge-patch")


def test_what_waits_goes_until_the_pe_has_a_node() -> None:
    world = World(1)
    with world.surroundings():
        submit(world, Submission("job", stages=1, max_width=2, width=1, extra={"warmPool": 1}))
        world.operators.start()
        world.run(90.0)
        assert is_healthy(world, "job")
        assert warm(world)
        schedule(world, {"status": "False", "message": "0/2 nodes: 2 Insufficient cpu."}, None)
        world.run(20.0)
        assert not warm(world)
        schedule(world, {"status": "True"}, "node")
        world.run(20.0)
        assert warm(world)
