"""What becomes of savepoints while the last edit of their job is refused."""

from dataclasses import replace
from typing import Any

import pytest
from tests.simulation.applications import Submission
from tests.simulation.faults import submit
from tests.simulation.savepoint_faults import create_savepoint, is_healthy
from tests.simulation.test_edits import accepted
from tests.simulation.world import World

from streamgraft_common.kube.client import Object
from streamgraft_common.resources import CONSISTENT_REGION, JOB, SAVEPOINT, SavepointStatus
from streamgraft_operator.savepoint import controller

SECONDS = 120.0
SUBMISSION = Submission("job", stages=2, max_width=2, width=2)
FUSED = {"fusion": {"type": "automatic"}}
APART = {"fusion": {"type": "legacy"}}


def change(world: World, spec: dict[str, Any]) -> None:
    """Change the spec of the Job."""
    world.request("PATCH", JOB, "job", {"spec": spec})


def begin(world: World, submission: Submission) -> None:
    """Submit a job whose operators have PEs of their own."""
    submit(world, submission)
    world.operators.start()
    while not is_healthy(world, "job"):
        world.run(1.0)


def refuse(world: World, spec: dict[str, Any]) -> None:
    """Have an edit refused."""
    change(world, spec)
    world.run(SECONDS)
    assert accepted(world)["status"] == "False"
    assert is_healthy(world, "job")


def savepoint(world: World, seconds: int = 300) -> SavepointStatus:
    """Take a savepoint of the job, and return what becomes of it."""
    name = create_savepoint(world, "job", seconds)
    world.run(SECONDS)
    return status_of(world, name)


def status_of(world: World, name: str) -> SavepointStatus:
    item = world.get(SAVEPOINT, name)
    assert item
    return SavepointStatus.model_validate(item["status"])


def test_no_savepoint_is_taken_of_a_refused_graph() -> None:
    world = World(1)
    with world.surroundings():
        begin(world, SUBMISSION)
        refuse(world, FUSED)
        assert "submit the application as it was" in accepted(world)["message"]
        status = savepoint(world)
        assert status.phase == "Failed"
        assert "was refused" in status.message
        change(world, APART)
        status = savepoint(world)
        assert (status.phase, status.message) == ("Completed", "")
        names = [stage.name for stage in status.stages]
        assert names == ["read", "work", "second", "write"]


def cut(world: World, number: int) -> None:
    """Ask for a cut, and let it come."""
    world.request("PATCH", CONSISTENT_REGION, "job-c", {"spec": {"requested": number}})
    world.run(SECONDS)


def region(world: World) -> Object:
    (item,) = world.objects(CONSISTENT_REGION)
    status: Object = item["status"]
    return status


def test_no_cut_is_taken_of_stages_that_a_refused_edit_would_fuse() -> None:
    world = World(1)
    with world.surroundings():
        begin(world, replace(SUBMISSION, consistent=True))
        cut(world, 1)
        assert region(world)["completedSequenceId"] == 1
        refuse(world, FUSED)
        cut(world, 2)
        (ready,) = [item for item in region(world)["conditions"] if item["type"] == "Ready"]
        assert "undone if it was refused" in ready["message"]
        change(world, APART)
        cut(world, 3)
        assert region(world)["completedSequenceId"] == 3


def test_without_the_look_at_what_runs_a_stage_is_not_saved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(controller, "runs", lambda *_: True)
    world = World(1)
    with world.surroundings():
        begin(world, SUBMISSION)
        refuse(world, FUSED)
        status = savepoint(world, 60)
        assert "second" not in [stage.name for stage in status.stages]
        assert "was refused" not in status.message
