"""Autoscalers with tolerances, also where the API server knows none."""

import pytest
from tests.simulation.applications import NAMESPACE, Submission
from tests.simulation.faults import submit
from tests.simulation.world import World

from streamgraft_common.kinds import AUTOSCALER, EVENT
from streamgraft_common.kube.client import Object

SECONDS = 180.0
"""Longer than the operator's look at everything: what is corrected without end would be by then."""


def autoscaled(world: World) -> Object:
    """Submit a job, let time pass, and return the autoscaler of its region."""
    submit(world, Submission("job", stages=1, max_width=2, width=1, sleepy=True))
    world.operators.start()
    world.run(SECONDS)
    (made,) = world.objects(AUTOSCALER)
    return made


@pytest.mark.parametrize("known", [True, False])
def test_a_server_that_drops_them_is_asked_once(
    known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And an autoscaler of an earlier release gets them without a word of it."""
    world = World(1)
    world.server.tolerances = known
    patches: list[object] = []
    request = world.server.request

    def counted(method: str, path: str, body: object, *more: object) -> object:
        if method == "PATCH" and path.startswith(AUTOSCALER.path(NAMESPACE)):
            patches.append(body)
        return request(method, path, body, *more)  # type: ignore[arg-type]

    with world.surroundings():
        made = autoscaled(world)
        behavior = made["spec"]["behavior"]
        assert ["tolerance" in rules for rules in behavior.values()] == [known, known]
        without = {direction: {"tolerance": None} for direction in behavior}
        name = made["metadata"]["name"]
        world.request("PATCH", AUTOSCALER, name, {"spec": {"behavior": without}})
        monkeypatch.setattr(world.server, "request", counted)
        world.run(SECONDS)
        (now,) = world.objects(AUTOSCALER)
    assert now["spec"] == made["spec"]
    assert len(patches) == (1 if known else 0)
    assert "AutoscalerCorrected" not in {item["reason"] for item in world.objects(EVENT)}


def test_rules_that_a_user_removes_come_back() -> None:
    world = World(1)
    with world.surroundings():
        made = autoscaled(world)
        name = made["metadata"]["name"]
        world.request("PATCH", AUTOSCALER, name, {"spec": {"behavior": None}})
        world.run(SECONDS)
        (now,) = world.objects(AUTOSCALER)
    assert now["spec"] == made["spec"]
