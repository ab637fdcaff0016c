"""An operator that does not see the volume of the checkpoints says what stays there."""

from dataclasses import replace

import pytest
from tests.operator.integration.hand_played import HandPlayedPe
from tests.operator.integration.world import World, application, bundle

from streamgraft_common.resources import JOB
from streamgraft_operator.settings import Settings

pytestmark = pytest.mark.integration


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Settings without a way to the checkpoints."""
    return replace(settings, checkpoint_root=None)


@pytest.mark.usefixtures("operator", "source_topic")
async def test_checkpoints_that_stay_are_told(world: World, player: HandPlayedPe) -> None:
    """The Event outlives the Job, and names the folder."""
    await world.upload(bundle(application(world.namespace)))
    await world.submit()
    job = await world.job_in("Healthy")
    await world.client.delete(JOB.path(world.namespace, "job"))
    await world.eventually(JOB, "job", lambda item: item is None)

    async def told() -> bool:
        folder = f"{world.namespace}/job-{job['metadata']['uid']}"
        return any(
            event["reason"] == "CheckpointsLeftOver" and folder in event["message"]
            for event in await world.events()
        )

    await world.until(told)
