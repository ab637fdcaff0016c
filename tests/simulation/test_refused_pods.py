"""Pods that the API server refuses: a quota, a limit range, pod security."""

from typing import Any

import pytest
from tests.simulation.applications import Submission
from tests.simulation.faults import crash_pod, submit
from tests.simulation.savepoint_faults import is_healthy
from tests.simulation.world import World

from streamgraft_common.conditions import find
from streamgraft_common.kube import Forbidden
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import JOB, PROCESSING_ELEMENT, ProcessingElementStatus

REFUSAL = 'pods "job-1" is forbidden: exceeded quota: small, requested: pods=1, used: pods=0'


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """A namespace whose quota is used up."""
    world = World(1)
    create = world.server.create

    def refuse(place: Any, body: Any) -> Object:
        if place.resource.plural == "pods":
            raise Forbidden(403, "Forbidden", REFUSAL)
        return create(place, body)

    monkeypatch.setattr(world.server, "create", refuse)
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


def _created(status: ProcessingElementStatus) -> str | None:
    found = find(status.conditions, "PodCreated")
    return found.status if found else None
