"""Why a warm pool that finds its own size has the size that it has."""

from dataclasses import replace

import pytest
from tests.operator.warm_pool.test_sizing import NOW, change

from streamgraft_common.resources import PoolReason
from streamgraft_operator.warm_pool.sizing import LATELY_SECONDS, Growth, reason

OLD = Growth(width=2, most=8, drivers=["a"], changes=(), created=NOW - 2 * LATELY_SECONDS)
STEP = change(1, 4, 5000)


@pytest.mark.parametrize(
    ("regions", "why"),
    [
        ([OLD], "OneChannel"),
        ([replace(OLD, changes=[STEP])], "LargestStep"),
        ([replace(OLD, changes=[STEP], expected=6)], "Expected"),
        ([replace(OLD, changes=[STEP], expected=3)], "LargestStep"),
        ([replace(OLD, created=NOW - 60)], "NewRegion"),
        ([replace(OLD, width=8)], "Widest"),
        ([replace(OLD, drivers=["b"])], "NoneFits"),
        ([OLD, replace(OLD, expected=6)], "Expected"),
    ],
)
def test_it_is_told_of_the_region_that_needs_most(regions: list[Growth], why: PoolReason) -> None:
    assert reason(regions, "a", NOW) == why
