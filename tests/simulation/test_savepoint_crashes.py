"""Pods that crash while their stages stop hold no savepoint up: their next launch goes on."""

from dataclasses import replace

import pytest
from tests.simulation.fake_pe import FakeStage
from tests.simulation.faults import any_submission, submit
from tests.simulation.savepoint_faults import crash_what_stops, is_healthy
from tests.simulation.world import World

from streamgraft_common.resources import SAVEPOINT, Saved, SavepointStatus, Saving

SEEDS = 30
SECONDS = 120
"""Enough for a launch or three; the savepoint itself would wait for 300 s."""


def saved(seed: int) -> SavepointStatus:
    """Take a savepoint, of which pods crash in the midst; return what becomes of it."""
    world = World(seed)
    with world.surroundings():
        submit(world, replace(any_submission(world, "job"), pooled=False, consistent=False))
        world.operators.start()
        while not is_healthy(world, "job"):
            world.run(1.0)
        world.run(world.chance.random() * 30)
        crash_what_stops(world)
        world.run(SECONDS)
        (item,) = world.objects(SAVEPOINT)
    return SavepointStatus.model_validate(item["status"])


def test_it_is_complete_and_names_the_batches_that_were_cut_off() -> None:
    found = [saved(seed) for seed in range(SEEDS)]
    assert {status.phase for status in found} == {"Completed"}
    assert any(status.unclean_shards for status in found)


def test_pods_that_copy_whole_batches_only_would_hold_it_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copied = FakeStage._copied

    def refused(self: FakeStage, request: Saving) -> Saved:
        found = copied(self, request)
        return Saved(uid=request.uid, message="a batch was cut off") if found.unclean else found

    monkeypatch.setattr(FakeStage, "_copied", refused)
    assert any(saved(seed).phase == "Saving" for seed in range(SEEDS))
