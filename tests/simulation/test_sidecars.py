"""Sidecars run on when a PE has ended: its pod stays Running, and is none of the job's any more."""

from tests.simulation.applications import Submission
from tests.simulation.healthy import begin_healthy
from tests.simulation.savepoint_faults import is_healthy
from tests.simulation.world import World

from streamgraft_common import names
from streamgraft_common.kinds import POD


def begin(world: World, submission: Submission) -> None:
    """Have a job that is healthy, whose pods have sidecars."""
    world.nodes.sidecars = True
    begin_healthy(world, submission)


def test_a_pe_that_ended_beside_a_sidecar_is_launched_again() -> None:
    world = World(1)
    with world.surroundings():
        begin(world, Submission("job", stages=1, max_width=2, width=1))
        crashed = [
            uid
            for uid, container in world.nodes.containers.items()
            if container.pe.pod["metadata"]["name"] == "job-2-1"
        ]
        world.nodes.crash(crashed[0])
        healthy = []
        for _ in range(120):
            world.run(0.5)
            healthy.append(is_healthy(world, "job"))
        assert not all(healthy)
        assert is_healthy(world, "job")
        assert crashed[0] not in [pod["metadata"]["uid"] for pod in world.objects(POD)]


def test_a_warm_pod_that_ended_beside_a_sidecar_is_replaced() -> None:
    world = World(1)
    with world.surroundings():
        extra = {"warmPool": 1}
        begin(world, Submission("job", stages=1, max_width=2, width=1, extra=extra))
        world.run(60.0)

        def warm() -> list[str]:
            return [
                pod["metadata"]["uid"]
                for pod in world.objects(POD)
                if names.LABEL_POOL in pod["metadata"]["labels"]
            ]

        (before,) = warm()
        world.nodes.crash(before)
        world.run(180.0)
        (after,) = warm()
        assert after != before
