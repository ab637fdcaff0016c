"""Savepoints of users that have the names of a consistent region's own, or say that they are."""

from typing import Any

import pytest
from tests.simulation.applications import NAMESPACE, Submission
from tests.simulation.fake_resources import FakeResource
from tests.simulation.fake_storage import Change
from tests.simulation.healthy import begin_healthy
from tests.simulation.savepoint_faults import is_healthy
from tests.simulation.test_rollbacks import ask, status_of, until
from tests.simulation.world import World

from streamgraft_common.conditions import find
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import (
    PROCESSING_ELEMENT,
    SAVEPOINT,
    ConsistentRegionStatus,
    Saving,
)

SUBMISSION = Submission("job", stages=1, max_width=2, width=2, consistent=True)


@pytest.fixture
def world() -> World:
    return World(1)


def put(world: World, name: str, **spec: Any) -> None:
    """Create a savepoint of the job, as a user did before admission policies refused it."""
    manifest = {
        "apiVersion": SAVEPOINT.api_version,
        "kind": SAVEPOINT.kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"job": "job", "timeoutSeconds": 60, **spec},
    }
    world.request("POST", SAVEPOINT, "", manifest)
    world.run(60.0)


def of(world: World, name: str) -> Object:
    """Return the status of a savepoint."""
    found: Object = (world.get(SAVEPOINT, name) or {})["status"]
    return found


def asked(world: World) -> list[Saving]:
    """Return a list that gets what PEs are asked to save."""
    found: list[Saving] = []

    def look(resource: FakeResource, _: Change) -> None:
        if resource.plural == PROCESSING_ELEMENT.plural:
            saving = (item["spec"].get("saving") for item in world.objects(PROCESSING_ELEMENT))
            found.extend(map(Saving.model_validate, filter(None, saving)))

    world.server.storage.observers.append(look)
    return found


def test_a_cut_whose_name_is_taken_fails_and_the_next_one_keeps_what_has_it(world: World) -> None:
    with world.surroundings():
        begin_healthy(world, SUBMISSION)
        until(world, "completedSequenceId", 1)
        put(world, "job-c-cut-2")
        assert of(world, "job-c-cut-2")["phase"] == "Completed"
        ask(world, "requested", 2)
        world.run(30.0)
        status = ConsistentRegionStatus.model_validate(status_of(world))
        assert (status.state, status.failed_cuts) == ("Running", 1)
        ready = find(status.conditions, "Ready")
        assert ready
        assert ready.reason == "CutFailed"
        assert "Savepoint job-c-cut-2 is none of its own" in ready.message
        seen = asked(world)
        ask(world, "requested", 3)
        until(world, "completedSequenceId", 3)
        kept = [saving.kept for saving in seen if saving.cut == 3]
        assert kept
        assert all("job-c-cut-2" in names for names in kept)
        assert of(world, "job-c-cut-2")["phase"] == "Completed"


def test_a_rollback_whose_name_is_taken_is_tried_again_under_another(world: World) -> None:
    with world.surroundings():
        begin_healthy(world, SUBMISSION)
        ask(world, "requested", 1)
        until(world, "completedSequenceId", 1)
        put(world, "job-c-rollback-1")
        ask(world, "rollbackRequested", 1)
        until(world, "completedRollbackId", 2)
        world.run(60.0)
        assert is_healthy(world, "job")


@pytest.mark.parametrize(
    ("name", "spec"),
    [
        ("mine", {"consistentRegion": "c"}),
        ("job-c-cut-7", {"consistentRegion": "c"}),
        ("mine", {"rollsBackTo": "job-c-cut-1"}),
        ("job-c-rollback-7", {"consistentRegion": "c", "rollsBackTo": "job-c-cut-1"}),
    ],
)
def test_no_user_makes_a_cut_or_a_rollback(world: World, name: str, spec: dict[str, Any]) -> None:
    """Sinks would commit what is in a cut that the region does not go back to."""
    with world.surroundings():
        begin_healthy(world, SUBMISSION)
        ask(world, "requested", 1)
        until(world, "completedSequenceId", 1)
        seen = asked(world)
        put(world, name, operators=["read"], **spec)
        assert of(world, name)["phase"] == "Failed"
        assert "are for Savepoints that the operator makes" in of(world, name)["message"]
        assert seen == []
        assert is_healthy(world, "job")
