"""A few seeds of the simulation; `make simulation` runs thousands."""

import os
import subprocess
import sys

import pytest
from tests.simulation.simulation import simulate

SEEDS = 20
PE_DELETED_IN_A_MOVE = 17954486044723
"""Once a pod that outlived its PE, and the shard's next owner, both wrote."""


@pytest.mark.parametrize("seed", [*range(SEEDS), PE_DELETED_IN_A_MOVE])
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
