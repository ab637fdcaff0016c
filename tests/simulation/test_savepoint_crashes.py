"""Pods that crash while their stages stop hold no savepoint up: their next launch goes on."""

from dataclasses import replace

import pytest
from tests.simulation.faults import any_submission
from tests.simulation.healthy import begin_healthy
from tests.simulation.savepoint_faults import crash_what_stops
from tests.simulation.world import World

from streamgraft_common.resources import SAVEPOINT, SavepointStatus

SEEDS = 30
SECONDS = 120
"""Enough for a launch or three; the savepoint itself would wait for 300 s."""


def saved(seed: int) -> SavepointStatus:
    """Take a savepoint, of which pods crash in the midst; return what becomes of it."""
    world = World(seed)
    with world.surroundings():
        begin_healthy(world, replace(any_submission(world, "job"), pooled=False, consistent=False))
        world.run(world.chance.random() * 30)
        crash_what_stops(world)
        world.run(SECONDS)
        (item,) = world.objects(SAVEPOINT)
    return SavepointStatus.model_validate(item["status"])


def test_it_is_complete_and_no_batch_of_it_runs_again() -> None:
    found = [saved(seed) for seed in range(SEEDS)]
    assert {(status.phase, status.unclean_shards) for status in found} == {("Completed", 0)}


def test_without_a_further_run_batches_would_be_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamgraft_operator.savepoint.step._cut_off", lambda view: frozenset())
    with pytest.raises(AssertionError, match="batches that others have read"):
        _ = [saved(seed) for seed in range(SEEDS)]
