"""Warm pools that find their own size take no more memory than they may."""

from typing import Any

import pytest
from tests.simulation.applications import Submission
from tests.simulation.faults import submit
from tests.simulation.world import World

from streamgraft_common import names
from streamgraft_common.kinds import POD


def waiting(memory: str, **settings: Any) -> int:
    """Return how many pods wait for a region that scales itself, where they may request so much."""
    world = World(1)
    with world.surroundings():
        extra = {"warmPoolMemory": memory, "processingElement": settings}
        submit(world, Submission("job", stages=1, max_width=3, width=1, sleepy=True, extra=extra))
        world.operators.start()
        world.run(120.0)
        assert world.invariants.broken == []
        return sum(names.LABEL_POOL in pod["metadata"]["labels"] for pod in world.objects(POD))


LIMITED = {"resources": {"limits": {"memory": "4Gi"}}}
SMALL = {"resources": {"requests": {"cpu": "100m"}}}


@pytest.mark.parametrize(
    ("memory", "settings", "pods"),
    [
        ("512Mi", {}, 1),
        ("511Mi", {}, 0),
        ("4Gi", LIMITED, 1),
        ("2Gi", LIMITED, 0),
        ("512Mi", SMALL, 1),
        ("511Mi", SMALL, 0),
        ("512Mi", {"podTemplate": {"spec": {"resources": {"limits": {"memory": "much"}}}}}, 1),
    ],
)
def test_what_pods_request_counts(memory: str, settings: dict[str, Any], pods: int) -> None:
    """A limit alone is requested, too; what requests nothing counts as by default."""
    assert waiting(memory, **settings) == pods
