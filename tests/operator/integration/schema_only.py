"""Objects of kinds that exist as schema only."""

from typing import Any

from tests.operator.integration.world import World, condition

from streamgraft_common.resources import EXPORT, IMPORT, SCHEMA_ONLY

SPECS: dict[str, dict[str, Any]] = {
    EXPORT.kind: {"job": "j", "operator": "o", "stream": "s", "name": "n"},
    IMPORT.kind: {"job": "j", "operator": "o", "name": "n"},
}


async def refused_each(world: World) -> None:
    """Create one object of each kind, and wait until the operator says that nothing will happen."""
    assert {kind.kind for kind in SCHEMA_ONLY} == SPECS.keys()
    for kind in SCHEMA_ONLY:
        manifest = kind.manifest("it", world.namespace, SPECS[kind.kind])
        await world.client.create(kind.path(world.namespace), manifest)
    for kind in SCHEMA_ONLY:
        item = await world.eventually(kind, "it", lambda item: item and condition(item, "Ready"))
        ready = condition(item, "Ready")
        assert (ready["status"], ready["reason"]) == ("False", "NotSupported")
        assert f"keeps {kind.kind} objects and does nothing with them" in ready["message"]
