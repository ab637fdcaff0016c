"""Pods that the API server refuses, and their account: a quota, a limit range, pod security."""

from typing import Any

import pytest
from tests.simulation.applications import Submission
from tests.simulation.faults import crash_pod, submit
from tests.simulation.savepoint_faults import is_healthy
from tests.simulation.test_edits import accepted
from tests.simulation.world import World

from streamgraft_common.conditions import find
from streamgraft_common.kinds import POD
from streamgraft_common.kube import Forbidden
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import JOB, PROCESSING_ELEMENT, ProcessingElementStatus

REFUSAL = 'pods "job-1" is forbidden: exceeded quota: small, requested: pods=1, used: pods=0'


def exhaust(world: World, plural: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use up the quota of a kind, which refuses what exists already as well."""
    create = world.server.create

    def refuse(place: Any, body: Any) -> Object:
        if place.resource.plural == plural:
            raise Forbidden(403, "Forbidden", REFUSAL)
        return create(place, body)

    monkeypatch.setattr(world.server, "create", refuse)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """A namespace in which there may be no more pods."""
    world = World(1)
    exhaust(world, "pods", monkeypatch)
    return world


def statuses(world: World) -> list[ProcessingElementStatus]:
    """Return what is said of each PE."""
    items = world.objects(PROCESSING_ELEMENT)
    return [ProcessingElementStatus.model_validate(item["status"]) for item in items]


def test_what_is_refused_is_told_by_the_pe_and_its_job(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until there is a pod; and nothing of it is left over for the next launch."""
    with world.surroundings():
        submit(world, Submission("job", stages=1, max_width=2, width=1))
        world.operators.start()
        world.run(120.0)
        assert {status.message for status in statuses(world)} == {REFUSAL}
        assert REFUSAL in (world.get(JOB, "job") or {})["status"]["message"]
        monkeypatch.undo()
        world.run(120.0)
        assert is_healthy(world, "job")
        assert {_created(status) for status in statuses(world)} == {"True"}
        world.nodes.delay = 1e6
        crash_pod(world)
        world.run(2.0)
        assert REFUSAL not in [status.message for status in statuses(world)]


def test_an_account_that_is_refused_is_told_by_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once it is there a quota that leaves no room for another does no harm."""
    world = World(1)
    with world.surroundings():
        exhaust(world, "serviceaccounts", monkeypatch)
        submit(world, Submission("job", stages=1, max_width=2, width=1))
        world.operators.start()
        world.run(60.0)
        said = accepted(world)
        assert (said["status"], said["reason"]) == ("False", "AccountRefused")
        assert REFUSAL in said["message"]
        assert world.objects(POD) == []
        monkeypatch.undo()
        world.run(120.0)
        assert is_healthy(world, "job")
        exhaust(world, "serviceaccounts", monkeypatch)
        world.run(300.0)
        assert accepted(world)["status"] == "True"
        assert is_healthy(world, "job")


def _created(status: ProcessingElementStatus) -> str | None:
    found = find(status.conditions, "PodCreated")
    return found.status if found else None
