"""PEs whose node never comes back go on elsewhere, and nobody has to delete their pods."""

import math
from typing import Any

import pytest
from tests.simulation.applications import Submission
from tests.simulation.fake_checkpoints import FakeCheckpoints
from tests.simulation.faults import submit
from tests.simulation.invariants import Broken
from tests.simulation.world import World

from streamgraft_common.kinds import POD
from streamgraft_common.resources import JOB
from streamgraft_operator.pe.lost_pods import LOST_SECONDS

GRACE_SECONDS = 30.0
ONE = Submission("job", stages=1, max_width=2, width=2)


@pytest.mark.parametrize("cut", [False, True], ids=["connected", "cut off"])
def test_a_job_goes_on_although_its_pods_never_end(cut: bool) -> None:
    """Their processes work on, for ever; the invariants watch that nothing is written twice."""
    _lose_all_nodes(cut=cut)


def _lose_all_nodes(*, cut: bool) -> None:
    world = World(1)
    with world.surroundings():
        submit(world, ONE)
        world.operators.start()
        world.run(300)
        lost = dict(world.nodes.containers)
        for uid, container in lost.items():
            world.nodes.lose(uid, math.inf)
            container.network.cut = cut
            world.request("DELETE", POD, container.pe.pod["metadata"]["name"], {})
        before = world.nodes.checkpoints.counts("work")
        world.run(GRACE_SECONDS + LOST_SECONDS - 5)
        assert {pod["metadata"]["uid"] for pod in world.objects(POD)} == set(lost)
        world.run(300)
        assert not {pod["metadata"]["uid"] for pod in world.objects(POD)} & set(lost)
        (job,) = world.objects(JOB)
        assert job["status"]["phase"] == "Healthy"
        after = world.nodes.checkpoints.counts("work")
        assert all(after[key] > count for key, count in before.items())


def test_checkpoints_that_fence_nobody_off_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug that seeds find rarely: one in 170."""

    def log(self: FakeCheckpoints, stage: Any, shard: int, batch: int) -> bool:
        self._checkpoints[stage, shard].logged = batch + 1
        return True

    monkeypatch.setattr(FakeCheckpoints, "log", log)
    with pytest.raises(Broken, match="once more"):
        _lose_all_nodes(cut=True)


def test_a_deleted_job_goes_although_its_pods_never_end() -> None:
    world = World(1)
    with world.surroundings():
        submit(world, ONE)
        world.operators.start()
        world.run(300)
        for uid in world.nodes.containers:
            world.nodes.lose(uid, math.inf)
        world.request("DELETE", JOB, "job", {})
        world.run(300)
        assert not world.objects(JOB)
        assert not world.objects(POD)
