"""Pods of channels that are given up go back to the warm pool, and become channels again."""

from tests.simulation.applications import Submission
from tests.simulation.faults import submit
from tests.simulation.world import World

from streamgraft_common import names
from streamgraft_common.kinds import POD
from streamgraft_common.resources import PARALLEL_REGION

SECONDS = 120.0


def pods(world: World, label: str) -> set[str]:
    """Return the uids of the pods that have a label."""
    return {
        pod["metadata"]["uid"] for pod in world.objects(POD) if label in pod["metadata"]["labels"]
    }


def widened(world: World, width: int) -> set[str]:
    """Set the width of the region and let it settle; return the channels' pods."""
    (region,) = world.objects(PARALLEL_REGION)
    name = region["metadata"]["name"]
    world.request("PATCH", PARALLEL_REGION, name, {"spec": {"width": width}})
    world.run(SECONDS)
    (region,) = world.objects(PARALLEL_REGION)
    assert region["status"]["width"] == width
    assert world.invariants.broken == []
    return pods(world, names.LABEL_REGION)


def test_channels_that_come_and_go_are_the_same_pods() -> None:
    world = World(0)
    with world.surroundings():
        extra = {"warmPool": 2}
        submit(world, Submission("job", stages=1, max_width=3, width=1, extra=extra))
        world.operators.start()
        world.run(SECONDS)
        pool = pods(world, names.LABEL_POOL)
        first = widened(world, 1)
        assert widened(world, 3) == first | pool
        everyone = pods(world, names.LABEL_JOB)
        assert widened(world, 1) == first
        assert world.invariants.returns == 2
        assert pods(world, names.LABEL_JOB) < everyone  # the pool was full again by then
        assert len(pods(world, names.LABEL_POOL)) == 2
        again = widened(world, 3)
        assert again <= everyone
