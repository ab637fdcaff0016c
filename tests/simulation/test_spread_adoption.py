"""Channels that come from the warm pool are spread over nodes."""

from tests.simulation.applications import NAMESPACE, Submission
from tests.simulation.faults import submit
from tests.simulation.world import World

from streamgraft_common import names
from streamgraft_common.kinds import POD
from streamgraft_common.resources import PARALLEL_REGION

SECONDS = 90.0


def pods(world: World, label: str) -> list[str]:
    """Return the names of the pods that have a label, in order."""
    metadata = [pod["metadata"] for pod in world.objects(POD)]
    return [has["name"] for has in metadata if label in has["labels"]]


def test_a_new_channel_takes_a_pod_on_another_node() -> None:
    world = World(0)
    with world.surroundings():
        submit(world, Submission("job", stages=1, max_width=2, width=1, extra={"warmPool": 2}))
        world.operators.start()
        world.run(SECONDS)
        (first,) = pods(world, names.LABEL_REGION)
        near, far = pods(world, names.LABEL_POOL)
        for pod, node in ((first, "a"), (near, "a"), (far, "b")):
            path = POD.path(NAMESPACE, pod)
            body = {"spec": {"nodeName": node}}
            world.server.request("PATCH", path, body, {}, "merge-patch")
        world.run(5.0)
        world.request("PATCH", PARALLEL_REGION, "job-r", {"spec": {"width": 2}})
        world.run(SECONDS)
        assert set(pods(world, names.LABEL_REGION)) == {first, far}
