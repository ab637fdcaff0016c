"""Jobs that are well before anything happens to them."""

from tests.simulation.applications import Submission
from tests.simulation.faults import submit
from tests.simulation.savepoint_faults import is_healthy
from tests.simulation.world import World


def begin_healthy(world: World, submission: Submission) -> None:
    """Submit `job`, and run it until it is healthy."""
    submit(world, submission)
    world.operators.start()
    while not is_healthy(world, "job"):
        world.run(1.0)
