"""Edits that the operator has to refuse: what runs goes on behind them."""

from dataclasses import replace

from tests.simulation.faults import apply, upload
from tests.simulation.savepoint_faults import is_healthy
from tests.simulation.world import World

from streamgraft_common.resources import JOB


def refuse_edit(world: World) -> None:
    """Submit a version that the state of a job can't become, and the former one after a while."""
    if not world.jobs or world.refused:
        return
    job = world.chance.choice(list(world.jobs))
    if not is_healthy(world, job) or world.get(JOB, job) is None:
        return
    refused = replace(world.jobs[job], kept="sum")
    world.note(f"user: asks job {job} for other state")
    upload(world, refused)
    apply(world, JOB, refused.manifest())
    world.refused.add(job)

    def undo() -> None:
        world.refused.clear()
        if now := world.jobs.get(job):
            world.note(f"user: submits job {job} as it was")
            upload(world, now)
            apply(world, JOB, now.manifest())

    world.loop.later(world.chance.uniform(5.0, 120.0), undo)
