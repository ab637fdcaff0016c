"""What runs behind an edit that was refused: all of it goes on, whatever is asked of it."""

from dataclasses import replace
from typing import Any

import pytest
from tests.simulation.applications import Submission
from tests.simulation.healthy import begin_healthy
from tests.simulation.savepoint_faults import create_savepoint, is_healthy
from tests.simulation.test_edits import accepted
from tests.simulation.test_scale_to_zero import resized
from tests.simulation.world import World

from streamgraft_common import names
from streamgraft_common.kinds import CONFIG_MAP, POD, SERVICE
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import (
    CONSISTENT_REGION,
    JOB,
    PROCESSING_ELEMENT,
    SAVEPOINT,
    SavepointStatus,
)
from streamgraft_operator.application.versions import Versions

SECONDS = 120.0
SUBMISSION = Submission("job", stages=2, max_width=2, width=2)
OTHER_IMAGE_AND_GRAPH = {"image": "other:2", "fusion": {"type": "automatic"}}
FUSED = {"fusion": {"type": "automatic"}}


def change(world: World, spec: dict[str, Any]) -> None:
    """Change the spec of the Job."""
    world.request("PATCH", JOB, "job", {"spec": spec})


def begin(world: World, submission: Submission) -> None:
    """Submit a job whose operators have PEs of their own."""
    begin_healthy(world, submission)


def refuse(world: World, spec: dict[str, Any]) -> None:
    """Have an edit refused."""
    change(world, spec)
    world.run(SECONDS)
    (job,) = world.objects(JOB)
    assert accepted(world)["status"] == "False"
    assert accepted(world)["observedGeneration"] == job["metadata"]["generation"]
    assert is_healthy(world, "job")


def savepoint(world: World, seconds: int = 300) -> SavepointStatus:
    """Take a savepoint of the job, and return what becomes of it."""
    name = create_savepoint(world, "job", seconds)
    world.run(SECONDS)
    return status_of(world, name)


def spec_of(world: World) -> Object:
    (job,) = world.objects(JOB)
    spec: Object = job["spec"]
    return spec


def status_of(world: World, name: str) -> SavepointStatus:
    item = world.get(SAVEPOINT, name)
    assert item
    return SavepointStatus.model_validate(item.get("status") or {})


def test_a_savepoint_behind_a_refused_edit_is_of_what_runs() -> None:
    world = World(1)
    with world.surroundings():
        begin(world, SUBMISSION)
        runs = spec_of(world)
        refuse(world, FUSED)
        assert "take a savepoint of what runs" in accepted(world)["message"]
        status = savepoint(world)
        assert (status.phase, status.message) == ("Completed", "")
        assert [stage.name for stage in status.stages] == ["read", "work", "second", "write"]
        assert status.job_spec == runs


def cut(world: World, number: int) -> None:
    """Ask for a cut, and let it come."""
    world.request("PATCH", CONSISTENT_REGION, "job-c", {"spec": {"requested": number}})
    world.run(SECONDS)


def region(world: World) -> Object:
    (item,) = world.objects(CONSISTENT_REGION)
    status: Object = item["status"]
    return status


def test_cuts_go_on_behind_a_refused_edit_that_would_fuse_their_stages() -> None:
    world = World(1)
    with world.surroundings():
        begin(world, replace(SUBMISSION, consistent=True))
        cut(world, 1)
        assert region(world)["completedSequenceId"] == 1
        refuse(world, FUSED)
        cut(world, 2)
        assert region(world)["completedSequenceId"] == 2
        assert accepted(world)["status"] == "False"


@pytest.mark.parametrize("spec", [FUSED, OTHER_IMAGE_AND_GRAPH])
def test_widths_change_behind_a_refused_edit(spec: dict[str, Any]) -> None:
    world = World(1)
    with world.surroundings():
        begin(world, SUBMISSION)
        refuse(world, spec)
        for width in (1, 2):
            assert resized(world, width) == (width, width)
        images = {pod["spec"]["containers"][0]["image"] for pod in world.objects(POD)}
        assert "other:2" not in images


def test_what_is_deleted_behind_a_refused_edit_is_made_again() -> None:
    world = World(1)
    with world.surroundings():
        begin(world, SUBMISSION)
        refuse(world, FUSED)
        for kind in (PROCESSING_ELEMENT, SERVICE, CONFIG_MAP):
            world.request("DELETE", kind, "job-2", {})
        world.run(1.0)
        assert not is_healthy(world, "job")
        world.run(SECONDS)
        assert is_healthy(world, "job")
        kinds = (PROCESSING_ELEMENT, SERVICE, CONFIG_MAP)
        assert all(world.get(kind, "job-2") for kind in kinds)


def test_a_version_that_somebody_damaged_is_noted_again() -> None:
    world = World(1)
    with world.surroundings():
        begin(world, SUBMISSION)
        data = {names.VERSION_KEY: "bm90aGluZw=="}
        world.request("PATCH", CONFIG_MAP, "job-accepted", {"binaryData": data})
        world.run(SECONDS)
        found = world.get(CONFIG_MAP, "job-accepted")
        assert found
        assert found["binaryData"] != data
        refuse(world, FUSED)
        assert resized(world, 1) == (1, 1)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("later", [0.0, 1.0, 3.0, 6.0])
def test_stages_that_stand_still_go_on_though_an_edit_is_refused(seed: int, later: float) -> None:
    """Whatever comes of the savepoint: nothing is without shards for good."""
    world = World(seed)
    with world.surroundings():
        begin(world, SUBMISSION)
        name = create_savepoint(world, "job", 60)
        while not status_of(world, name).parked:
            world.run(0.1)
        world.run(later)
        refuse(world, FUSED)
        assert status_of(world, name).phase in ("Completed", "Failed")
        specs = [item["spec"] for item in world.objects(PROCESSING_ELEMENT)]
        shards = sorted((spec["stageName"], shard) for spec in specs for shard in spec["shards"])
        groups = [(stage, n) for stage in ("second", "work") for n in range(2)]
        assert shards == sorted([("read", 0), ("write", 0), *groups])
        before = world.nodes.checkpoints.counts("work")
        world.run(SECONDS)
        after = world.nodes.checkpoints.counts("work")
        assert all(after[key] > count for key, count in before.items())


def test_without_the_version_that_was_accepted_they_stand_still(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def nothing(*_: object) -> None:
        return None

    monkeypatch.setattr(Versions, "accepted", nothing)
    world = World(1)
    with world.surroundings():
        begin(world, SUBMISSION)
        name = create_savepoint(world, "job", 60)
        while "work" not in status_of(world, name).parked:
            world.run(0.1)
        change(world, FUSED)
        world.run(SECONDS)
        specs = [item["spec"] for item in world.objects(PROCESSING_ELEMENT)]
        assert not all(spec["shards"] for spec in specs)
