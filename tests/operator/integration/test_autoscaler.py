"""The generated HorizontalPodAutoscaler, on the real API server: made, kept, and let go."""

from typing import Any

import pytest
from tests.operator.integration.world import World

from streamgraft_common.kinds import AUTOSCALER
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import PARALLEL_REGION

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("operator")]

NAME = "j-r"


async def create_region(world: World) -> None:
    """Create a region that asks for autoscaling; no job is needed for that."""
    spec = {"job": "j", "region": "r", "width": 1, "maxWidth": 8, "key": ["k"]}
    asked = {"maxWidth": 4, "scaleDownSeconds": 60}
    body = PARALLEL_REGION.manifest(NAME, world.namespace, {**spec, "autoscaling": asked})
    await world.client.create(PARALLEL_REGION.path(world.namespace), body)


async def ask(world: World, autoscaling: dict[str, Any] | None) -> None:
    """Change what the region asks for."""
    path = PARALLEL_REGION.path(world.namespace, NAME)
    await world.client.patch(path, {"spec": {"autoscaling": autoscaling}})


async def made(world: World) -> Object:
    """Wait until it is there."""
    item: Object = await world.eventually(AUTOSCALER, NAME, lambda item: item)
    return item


async def gone(world: World) -> None:
    """Wait until it is not there."""
    await world.eventually(AUTOSCALER, NAME, lambda item: item is None)


async def test_it_is_made_kept_in_step_and_removed(world: World) -> None:
    await create_region(world)
    first = await made(world)
    assert first["spec"]["maxReplicas"] == 4
    assert first["spec"]["behavior"]["scaleUp"]["tolerance"] == "0"
    assert first["metadata"]["ownerReferences"][0]["kind"] == "ParallelRegion"

    # What the API server fills in must not look like a drift, or it would be patched for ever.
    path = AUTOSCALER.path(world.namespace, NAME)
    await world.client.patch(path, {"spec": {"maxReplicas": 7, "behavior": None}})
    await world.eventually(AUTOSCALER, NAME, lambda item: item and item["spec"] == first["spec"])

    await ask(world, {"maxWidth": 6})
    await world.eventually(AUTOSCALER, NAME, lambda item: item and item["spec"]["maxReplicas"] == 6)
    await ask(world, None)
    await gone(world)


async def test_a_user_s_own_takes_its_place(world: World) -> None:
    await create_region(world)
    generated = await made(world)
    place = AUTOSCALER.path(world.namespace)
    own = {**generated, "metadata": {"name": "mine", "namespace": world.namespace}}
    await world.client.create(place, {name: own[name] for name in own if name != "status"})
    await gone(world)
    await world.client.delete(f"{place}/mine")
    await made(world)
