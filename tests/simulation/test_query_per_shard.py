"""PEs that run a query per shard though one per channel was planned: who says so, and how often."""

import pytest
from tests.simulation.applications import Submission
from tests.simulation.fake_pe import FakeStage
from tests.simulation.faults import crash_pod, submit
from tests.simulation.savepoint_faults import is_healthy
from tests.simulation.world import World

from streamgraft_common.conditions import find
from streamgraft_common.kinds import EVENT
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import PARALLEL_REGION, PROCESSING_ELEMENT
from streamgraft_common.resources.base import Condition

WHY = "it has a watermark"


def told(item: Object, kind: str) -> Condition | None:
    """Return a condition of an object."""
    return find([Condition.model_validate(said) for said in item["status"]["conditions"]], kind)


def test_pe_region_and_an_event_tell_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, whatever happens to its pods, until an edit is planned as it should be."""
    monkeypatch.setattr(FakeStage, "apart", WHY)
    world = World(1)
    with world.surroundings():
        submit(world, Submission("job", stages=1, max_width=2, width=1))
        world.operators.start()
        world.run(60.0)
        crash_pod(world)
        world.run(120.0)
        assert is_healthy(world, "job")
        elements = world.objects(PROCESSING_ELEMENT)
        for item in elements:
            said = told(item, "QueryShared")
            assert said
            assert said.status == "False"
            assert WHY in said.message
        events = [item for item in world.objects(EVENT) if item["reason"] == "QueryPerShard"]
        about = sorted(item["involvedObject"]["name"] for item in events)
        assert about == sorted(item["metadata"]["name"] for item in elements)
        (region,) = world.objects(PARALLEL_REGION)
        ready = told(region, "Ready")
        assert ready
        assert f"a query for each, instead of one per channel, in job-2: {WHY}" in ready.message
        monkeypatch.undo()
        submit(world, Submission("job", stages=1, max_width=2, width=1, version=2))
        world.run(120.0)
        crash_pod(world)
        world.run(120.0)
        found = [told(item, "QueryShared") for item in world.objects(PROCESSING_ELEMENT)]
        assert "True" in [said.status for said in found if said]
