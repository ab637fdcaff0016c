"""A few seeds of the simulation; `make simulation` runs thousands."""

import os
import subprocess
import sys

import pytest
from tests.simulation.simulation import simulate

SEEDS = 20
FOUND = (
    # A pod that outlived its PE, and the shard's next owner, both wrote.
    17954486044723,
    # PEs were deleted while a savepoint was drained; one came anew, with its shard, to copy it.
    17954486043221,
    # A PE was deleted and came anew: that the first one's pod was gone was taken for its own.
    17954486048973,
    # The answer to the creation of a ConfigMap that was deleted since brought it back to the cache.
    17954486042405,
    # A region was deleted, and one of its PEs, which no watch had shown, had shards.
    17954534215557,
    # A stage came between two of a consistent region while a cut drained, and before it began.
    1061,
    1044,
    # A job was deleted while a savepoint drained whose first stage had to end its batch once more.
    1344,
)
"""Seeds of soaks that found a fault of the operator."""


@pytest.mark.parametrize("seed", [*range(SEEDS), *FOUND])
def test_invariants_hold(seed: int) -> None:
    outcome = simulate(seed)
    assert outcome.problem is None, f"{outcome.problem}; trace: make replay SEED={seed}"


def test_a_seed_is_the_same_in_every_process() -> None:
    """Neither the order of sets of strings nor addresses in memory make a difference."""

    def trace(hash_seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        command = [sys.executable, "-m", "tests.simulation", "--replay", "7"]
        result = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        )
        return result.stdout

    assert trace("1") == trace("2")
