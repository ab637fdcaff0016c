"""A short torture run on real parts; `make torture` makes 200 width changes, and edits."""

import pytest
from tests.e2e.torture.run import torture

from streamgraft_local import Cluster

pytestmark = pytest.mark.e2e

CHANGES = 5
SEED = 1183
"""A source's JVM, pods of the sink and the region, the operator and the broker die in turn."""


async def test_results_are_those_of_a_batch_in_spite_of_kills(
    cluster: Cluster, namespace: str
) -> None:
    verdict = await torture(cluster, namespace, SEED, CHANGES, print)
    assert verdict.problems == []
    assert verdict.struck.total() > CHANGES // 2, "what was struck was hardly there: a blind run"
