"""The volume of a job's checkpoints stays: on another one all would begin anew."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from tests.simulation.applications import Submission
from tests.simulation.faults import crash_pod, submit
from tests.simulation.healthy import begin_healthy
from tests.simulation.savepoint_faults import is_healthy
from tests.simulation.test_edits import accepted
from tests.simulation.world import World

from streamgraft_common.kinds import POD
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import JOB, PROCESSING_ELEMENT

SUBMISSION = Submission("job", stages=1, max_width=2, width=2)


@contextmanager
def healthy() -> Iterator[World]:
    """Run the job."""
    world = World(1)
    with world.surroundings():
        begin_healthy(world, SUBMISSION)
        yield world


def move(world: World, claim: str | None) -> None:
    """Have the checkpoints on another volume: no rule of the API server keeps one from it here."""
    files = {"volumeClaim": {"name": claim}} if claim else None
    repository = {"checkpointRepository": {"fileSystem": files}}
    world.request("PATCH", JOB, "job", {"spec": {"processingElement": repository}})


def volume_of(pod: Object) -> Object:
    """Return where a pod has the checkpoints."""
    volumes: list[Object] = pod["spec"]["volumes"]
    return next(item for item in volumes if item["name"] == "checkpoints")


def test_a_job_that_runs_stays_where_its_checkpoints_are() -> None:
    with healthy() as world:
        before = [item["spec"] for item in world.objects(PROCESSING_ELEMENT)]
        move(world, "other")
        world.run(60.0)
        assert accepted(world)["status"] == "False"
        assert "all of it would begin anew" in accepted(world)["message"]
        assert [item["spec"] for item in world.objects(PROCESSING_ELEMENT)] == before
        move(world, None)
        world.run(60.0)
        assert accepted(world)["status"] == "True"


def restart_on(world: World, volume: Object) -> None:
    """Start the operator anew, with another volume for checkpoints."""
    world.operators.settings = replace(world.operators.settings, checkpoint_volume=volume)
    world.operators.crash(world.operators.replicas[0], 0)
    world.run(60.0)


def test_no_pod_is_started_on_another_volume_of_the_installation() -> None:
    with healthy() as world:
        restart_on(world, {"hostPath": {"path": "/other"}})
        assert "all of it would begin anew" in accepted(world)["message"]
        crash_pod(world)
        world.run(60.0)
        assert all("emptyDir" in volume_of(pod) for pod in world.objects(POD))
        restart_on(world, {"emptyDir": {}})
        assert is_healthy(world, "job")


def test_a_job_that_never_ran_may_get_another_volume() -> None:
    """Such as one whose claim does not exist."""
    world = World(1)
    with world.surroundings():
        world.nodes.delay = 1e6
        submit(world, SUBMISSION)
        world.operators.start()
        world.run(1.0)
        assert world.objects(PROCESSING_ELEMENT)
        move(world, "other")
        world.run(5.0)
        assert accepted(world)["status"] == "True"
