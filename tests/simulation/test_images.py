"""Jobs below an operator of another image: none before they are submitted again."""

from dataclasses import replace

import pytest
from tests.simulation.applications import Submission
from tests.simulation.fake_resources import FakeResource
from tests.simulation.fake_storage import Change
from tests.simulation.faults import submit
from tests.simulation.world import World

from streamgraft_common import names
from streamgraft_common.kinds import POD
from streamgraft_common.resources import JOB

SECONDS = 120.0


def images(world: World) -> set[str]:
    """Return the images of all pods."""
    return {pod["spec"]["containers"][0]["image"] for pod in world.objects(POD)}


@pytest.mark.parametrize("seed", range(8))
def test_an_unchanged_job_that_is_submitted_again_takes_the_image_up(seed: int) -> None:
    """And is not healthy before its pods have it, whoever looks when."""
    world = World(seed)
    with world.surroundings():
        submit(world, Submission("job", stages=1, max_width=2, width=1))
        world.operators.start()
        world.run(SECONDS)
        before = world.objects(POD)
        world.operators.settings = replace(world.operators.settings, image="next")
        world.operators.leave(world.operators.replicas[0])
        world.run(SECONDS)
        assert world.objects(POD) == before
        healthy: list[set[str]] = []

        def look(_: FakeResource, __: Change) -> None:
            status = (world.get(JOB, "job") or {}).get("status", {})
            if status.get("imageSubmission") and status["phase"] == "Healthy":
                healthy.append(images(world))

        world.server.storage.observers.append(look)
        for network in world.networks:
            network.refused = 0.5  # so that the operator's writes come in any order
        submitted = {names.ANNOTATION_SUBMITTED: "now"}
        world.request("PATCH", JOB, "job", {"metadata": {"annotations": submitted}})
        world.run(5)
        for network in world.networks:
            network.calm()
        world.run(SECONDS)
    assert images(world) == {"next"}
    assert [found for found in healthy if found != {"next"}] == []
    assert healthy
