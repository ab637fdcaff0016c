"""A cut that a rollback is asked for in the midst of is given up while it drains, or ends first."""

import pytest
from tests.simulation.fake_resources import FakeResource
from tests.simulation.fake_storage import Change
from tests.simulation.test_rollbacks import ask, has_cut, until
from tests.simulation.world import World

from streamgraft_common.resources import SAVEPOINT

SEEDS = range(5, 20)
"""In seed 4 the cut that all begins with takes longer than it may, as in one of some hundred."""


def nearly_still(world: World) -> bool:
    """Return whether the last stages of the cut are about to stand still."""
    status = (world.get(SAVEPOINT, "job-c-cut-2") or {}).get("status") or {}
    return bool(status.get("parked")) and len(status["parked"]) == len(status["stages"])


def deleted_in(seed: int) -> set[str]:
    """Ask for a cut and then for a rollback; return the phases that the cut was deleted in."""
    world = World(seed)
    with world.surroundings():
        has_cut(world, falls_back=False)
        phases = set()

        def look(resource: FakeResource, _: Change) -> None:
            item = world.get(SAVEPOINT, "job-c-cut-2")
            ours = resource.plural == SAVEPOINT.plural
            if item and ours and "deletionTimestamp" in item["metadata"]:
                phases.add((item.get("status") or {}).get("phase", "Pending"))

        world.server.storage.observers.append(look)
        for network in world.networks:
            network.latency = 0.5
        ask(world, "requested", 2)
        while not nearly_still(world):
            world.run(0.1)
        world.run(world.chance.random() * 3)
        ask(world, "rollbackRequested", 1)
        until(world, "completedRollbackId", 1)
    return phases


@pytest.mark.parametrize("seed", SEEDS)
def test_no_cut_is_deleted_that_has_all_it_needs(seed: int) -> None:
    assert deleted_in(seed) <= {"Pending", "Draining"}
