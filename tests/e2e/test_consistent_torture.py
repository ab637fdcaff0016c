"""Four rounds of torture of a consistent region; `make torture-consistent` makes a hundred."""

from pathlib import Path

import pytest
from tests.e2e.torture.consistent.run import torture

from streamgraft_local import Cluster

pytestmark = [pytest.mark.e2e, pytest.mark.long]

ROUNDS = 4
SEED = 27624
"""Full disk, frozen operator, killed and deleted pods, killed broker and repository, a JVM gone."""


async def test_both_sinks_have_what_a_batch_has_in_spite_of_kills_amid_cuts_and_rollbacks(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    verdict = await torture(cluster, namespace, tmp_path, SEED, ROUNDS, print)
    assert verdict.problems == []
    assert (verdict.runs, verdict.wrong) == (ROUNDS, 0)
