"""Savepoints of one job that are asked for in the same second."""

import pytest
from tests.simulation.applications import NAMESPACE, Submission
from tests.simulation.fake_resources import FakeResource
from tests.simulation.fake_storage import Change
from tests.simulation.healthy import begin_healthy
from tests.simulation.world import World

from streamgraft_common.resources import SAVEPOINT
from streamgraft_operator.savepoint.step import ACTIVE


def take(world: World, name: str) -> None:
    manifest = {
        "apiVersion": SAVEPOINT.api_version,
        "kind": SAVEPOINT.kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"job": "job", "timeoutSeconds": 300},
    }
    world.request("POST", SAVEPOINT, "", manifest)


def phases(world: World) -> dict[str, str]:
    return {
        item["metadata"]["name"]: (item.get("status") or {}).get("phase", "Pending")
        for item in world.objects(SAVEPOINT)
    }


@pytest.mark.parametrize("seed", range(10))
def test_one_waits_for_the_other(seed: int) -> None:
    """The one that is first by its name may come when the other one is about to begin."""
    world = World(seed)
    with world.surroundings():
        begin_healthy(world, Submission("job", stages=1, max_width=2, width=2))
        for network in world.networks:
            network.latency = 0.5
        together: list[dict[str, str]] = []

        def look(resource: FakeResource, _: Change) -> None:
            if resource.plural == SAVEPOINT.plural:
                found = phases(world)
                together.extend(
                    [found] if sum(map(ACTIVE.__contains__, found.values())) > 1 else []
                )

        world.server.storage.observers.append(look)
        take(world, "second")
        world.run(world.chance.random() / 2)
        take(world, "first")
        world.run(120.0)
        assert together == []
        assert phases(world) == {"first": "Completed", "second": "Completed"}
