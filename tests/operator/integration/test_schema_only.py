"""Objects of kinds that exist as schema only: the operator says so on each of them."""

import pytest
from tests.operator.integration.schema_only import refused_each
from tests.operator.integration.world import World, condition

from streamgraft_common.resources import IMPORT

pytestmark = pytest.mark.integration


@pytest.mark.usefixtures("operator")
async def test_a_condition_says_that_nothing_happens(world: World) -> None:
    """It follows the spec, and the API server takes the status as the schema has it."""
    await refused_each(world)
    name = {"spec": {"name": "other"}}
    await world.client.patch(IMPORT.path(world.namespace, "it"), name)
    await world.eventually(
        IMPORT,
        "it",
        lambda item: condition(item or {}, "Ready")["observedGeneration"] == 2,
    )
