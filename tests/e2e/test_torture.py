"""A short torture run; `make torture` is the long one (docs/width-changes.md)."""

import pytest
from tests.e2e.torture.run import torture

from streamgraft_local import Cluster

pytestmark = pytest.mark.e2e

SEED = 4
CHANGES = 9
"""As many as it takes to kill a pod, the operator and the broker once each."""


async def test_torture(
    cluster: Cluster, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every result is that of a batch computation over what went into the region."""
    with capsys.disabled():  # the progress of a minute is worth seeing
        verdict = await torture(cluster, namespace, SEED, CHANGES, print)
    assert verdict.problems == []
