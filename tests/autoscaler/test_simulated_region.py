"""The simulated region: what a width change affects there, and what it costs."""

import pytest

from streamgraft_autoscaler.pricing import MeasuredChange
from streamgraft_autoscaler.replay.region import RegionModel, SimulatedRegion

MODEL = RegionModel(true_rate=100.0, shards=60, batch_cost_seconds=0.0, pause_seconds=2.0)


@pytest.mark.parametrize(
    ("before", "after", "share"),
    [(1, 2, 1.0), (6, 7, 1.0), (7, 6, 1.0), (12, 13, 5 / 12), (13, 12, 5 / 12), (0, 3, 1.0)],
)
def test_all_shards_of_channels_that_give_or_take_some_stand_still(
    before: int, after: int, share: float
) -> None:
    """From twelve channels to thirteen five shards move, each from another channel."""
    assert MODEL.affected_share(before, after) == pytest.approx(share)


def test_a_job_that_restarts_stands_still() -> None:
    """All of it, however little moves."""
    assert RegionModel(100.0, 60, restarts=True).affected_share(12, 13) == 1.0


def test_a_region_tells_what_its_changes_took() -> None:
    """As the status of a ParallelRegion does, from which the price is learned."""
    region = SimulatedRegion(MODEL, 6)
    for width in (7, 6):
        region.want(width)
        for _ in range(10):
            region.step(15.0, 10.0)
    assert region.changes == [
        MeasuredChange(1, idle_seconds=30.0, still_channels=7.0),
        MeasuredChange(1, idle_seconds=2.0, still_channels=7.0),
    ]


def test_affected_shards_delay_their_records() -> None:
    """By as long as they stand still."""
    region = SimulatedRegion(MODEL, 2)
    region.step(1.0, 10.0)
    calm = region.delay
    region.want(1)
    region.step(1.0, 10.0)
    assert region.delay > calm + MODEL.pause_seconds / 2
    region.step(1.0, 10.0)
    region.step(1.0, 10.0)
    assert region.delay == pytest.approx(calm)
