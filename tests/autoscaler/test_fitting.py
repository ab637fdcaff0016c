"""How the work is divided: what the fullest channel gets, as shards are assigned to channels."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgraft_autoscaler.fitting import Shards
from streamgraft_autoscaler.replay.region import RegionModel
from streamgraft_operator.graph import assign


@pytest.mark.parametrize(
    ("shards", "width", "share"),
    [
        (Shards(60, 0.1), 6, 0.1 + 9 * 0.9 / 59),
        (Shards(60, 0.1), 7, 0.1 + 8 * 0.9 / 59),
        (Shards(60, 0.1), 60, 0.1),
        (Shards(60, 0.0), 6, 1 / 6),
        (Shards(60, 0.0), 7, 9 / 60),
        (Shards(1, 0.0), 1, 1.0),
        (Shards(4, 1.0), 2, 1.0),
        (Shards(60, 0.1, 0.9 / 59), 6, 0.1 + 9 * 0.9 / 59),
        (Shards(60, 0.1, 0.01), 6, 0.1 + 9 * 0.01),
        (Shards(64, 0.25, 0.0), 2, 0.5),
        (Shards(64, 0.25, 0.0), 4, 0.25),
        (Shards(16, 0.14, 0.0), 6, 0.28),
        (Shards(16, 0.14, 0.0), 7, 0.14 + 0.02),
        (Shards(16, 0.19, 0.005), 4, 0.19 + 0.185 + 2 * 0.005),
    ],
)
def test_the_fullest_shard_has_others_beside_it(shards: Shards, width: int, share: float) -> None:
    assert shards.fullest_channel(width) == pytest.approx(share)


@given(st.integers(2, 24), st.floats(0.0, 1.0), st.randoms(use_true_random=False))
def test_no_channel_of_an_assignment_gets_more(
    count: int, largest: float, chance: random.Random
) -> None:
    """Whatever widths came before: which channels have a shard more is not decided by load."""
    shares = RegionModel(100.0, count, largest_shard=largest).division.shares()
    chance.shuffle(shares)
    loads, owners = dict(enumerate(shares)), dict[int, int]()
    for _ in range(4):
        width = chance.randint(1, count)
        owners = assign(count, width, owners, loads)
        channels = [0.0] * width
        for shard, channel in owners.items():
            channels[channel] += loads[shard]
        assert max(channels) <= Shards(count, largest).fullest_channel(width) + 1e-9


@pytest.mark.parametrize(("hot", "widest"), [(4, 4), (8, 8), (20, 22)])
@pytest.mark.parametrize("before", [1, 3, 64])
def test_hot_shards_are_spread_by_their_load(hot: int, widest: int, before: int) -> None:
    """So many of 64 get all records: what divides them does as well as with even shards, what does
    not has a channel with one more, and hardly anything beyond is useful."""
    shares = [1 / hot if shard % 3 == 0 and shard < 3 * hot else 0.0 for shard in range(64)]
    loads, division = dict(enumerate(shares)), Shards(64, 1 / hot, 0.0)
    for width in range(1, 65):
        owners = assign(64, width, assign(64, before, {}, loads), loads)
        channels = [0.0] * width
        for shard, channel in owners.items():
            channels[channel] += loads[shard]
        assert max(channels) == pytest.approx(division.fullest_channel(width)), width
    assert division.useful_widths(64)[-1] == widest


@given(st.integers(1, 64), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_simulated_shards_have_these_shares(count: int, largest: float, median: float) -> None:
    shares = RegionModel(100.0, count, largest_shard=largest, median_shard=median).division.shares()
    assert len(shares) == count
    assert sum(shares) == pytest.approx(1.0)
    assert all(one >= other - 1e-9 for one, other in pairwise(shares))
    assert shares[0] == pytest.approx(max(largest, 1 / count))


@pytest.mark.parametrize("width", [1, 6, 7, 9, 60])
def test_the_simulated_region_divides_alike(width: int) -> None:
    """The first channel gets the fullest shard, and as many others as any channel."""
    model = RegionModel(100.0, 60, largest_shard=0.1, batch_cost_seconds=0.0)
    dealt = sum(model.division.shares()[0::width])
    assert model.busy_share(width, 100.0) == pytest.approx(dealt)


def test_widths_that_bring_next_to_nothing_are_not_useful() -> None:
    """Where one shard of 60 has 30 %, from 20 channels on there is little left to take away."""
    assert Shards(60, 0.0).useful_widths(16) == (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15)
    assert Shards(60, 0.1).useful_widths(60)[-3:] == (20, 30, 60)
    assert Shards(60, 0.3).useful_widths(60)[-1] == 20
    assert Shards(60, 1.0).useful_widths(60) == (1,)
