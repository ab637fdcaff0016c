"""What no job can start from, whoever writes its Job: the command line refuses it as well."""

import pytest
from tests.simulation.applications import Submission
from tests.simulation.faults import submit
from tests.simulation.healthy import begin_healthy
from tests.simulation.world import World

from streamgraft_common.resources import JOB, SAVEPOINT, JobStatus

SUBMISSION = Submission("job", stages=1, max_width=2, width=1)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("consistentRegion", "a cut of consistent region all, which is not the whole job"),
        ("region", "has one region only"),
    ],
)
def test_part_of_a_job(part: str, message: str) -> None:
    world = World(1)
    with world.surroundings():
        begin_healthy(world, SUBMISSION)
        spec = {"job": "job", part: "all"}
        world.request("POST", SAVEPOINT, "", SAVEPOINT.manifest("part", "test", spec))
        submit(world, Submission("late", 1, 2, 1, extra={"savepoint": {"name": "part"}}))
        world.run(60.0)
        late = JobStatus.model_validate((world.get(JOB, "late") or {})["status"])
        assert message in late.message
