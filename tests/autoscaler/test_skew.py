"""Demand where one shard gets more than others: what width can do, and what it can't."""

import dataclasses

import pytest
from tests.autoscaler.loads import POLICY, capacity, demanded, loaded

from streamgraft_autoscaler.economy import Past
from streamgraft_autoscaler.forecast import Forecast
from streamgraft_autoscaler.hpa import spec_of
from streamgraft_autoscaler.replay import Experiment, RegionModel, Trace, replay
from streamgraft_common.adl import Autoscaling
from streamgraft_common.autoscaler_spec import autoscaler_spec


def test_a_shard_can_not_be_divided() -> None:
    """Beside the hot one 8 channels have one other at most; 16 would bring next to nothing."""
    result = demanded(loaded(400.0, largest_shard=0.5))
    assert result.value == 8
    assert "can't be divided" in result.held[0]
    narrow = demanded(
        loaded(400.0, largest_shard=0.5), policy=dataclasses.replace(POLICY, max_width=4)
    )
    assert narrow.held == ("5 channels' worth of work, but the largest width is 4",)


@pytest.mark.parametrize(("shards", "largest"), [(2, 0.95), (3, 0.65)])
def test_a_hot_shard_of_few_is_the_reason_too(shards: int, largest: float) -> None:
    """Less than twice its even share: the work would do for fewer channels than there are."""
    policy = dataclasses.replace(POLICY, max_width=shards, shards=shards)
    found = demanded(loaded(190.0, largest_shard=largest), 1, policy)
    assert any("width can't help" in reason for reason in found.held)
    even = demanded(loaded(390.0), 1, policy)
    assert f"the largest width is {shards}" in even.held[0]


@pytest.mark.parametrize(("median", "width"), [(0.0, 4), (1.0, 22)])
def test_several_hot_shards_are_in_channels_of_their_own(median: float, width: int) -> None:
    """Of 64 shards four have all records; where nobody knows which, they may meet."""
    policy = dataclasses.replace(POLICY, max_width=64, shards=64, headroom=0.25)
    load = loaded(240.0, largest_shard=0.25, median_shard=median)
    assert demanded(load, 1, policy).value == width


@pytest.mark.parametrize(("hot", "rate", "width"), [(7, 3_600.0, 8), (5, 2_500.0, 6)])
def test_hot_shards_that_channels_can_not_divide_evenly_change_no_width(
    hot: int, rate: float, width: int
) -> None:
    """With six (four) channels one of them would have two of the hot ones, and stay behind."""
    total = hot + (16 - hot) * 0.02
    skewed = RegionModel(
        1_000.0, 16, batch_cost_seconds=0.0, largest_shard=1 / total, median_shard=0.02 / total
    )
    experiment = Experiment(
        trace=Trace("constant", 60.0, (rate,) * 240),
        model=skewed,
        autoscaler=spec_of({"spec": autoscaler_spec(Autoscaling(), 16, {})}),
        policy=dataclasses.replace(POLICY, headroom=0.25),
        objective_seconds=30.0,
        measured_price=True,
    )
    found = replay(experiment, 4)
    assert [change.wanted for change in found.changes] == [width]
    assert found.violation_ratio == 0


def test_a_hot_shard_is_not_alone_in_its_channel() -> None:
    """With six channels it would have nine others beside it, 23.7 % of the work in all."""
    policy = dataclasses.replace(POLICY, max_width=60, shards=60)
    assert demanded(loaded(400.0), policy=policy).value == 5
    assert demanded(loaded(400.0, largest_shard=0.1), policy=policy).value == 9


@pytest.mark.parametrize("day", [None, Forecast((4_880.0,) * 96, 0.05, trusted=True)])
@pytest.mark.parametrize("rate", [4_880.0, 4_740.0])
def test_what_no_width_can_do_is_not_done_at_a_narrower_one(
    rate: float, day: Forecast | None
) -> None:
    """One of 60 shards gets a fifth, and keeps its channel busy for 97.6 % (94.8 %) of its time.

    Beside another one, at width 30, it would be 102.5 % (99.6 %); 60 is not worth growing to.
    """
    policy = dataclasses.replace(POLICY, max_width=60, shards=60, headroom=0.25)
    load = loaded(rate, largest_shard=0.2, capacity=capacity(1_000.0, 60))
    around = {"past": Past(1e5, ((90_000.0, 60), (80_000.0, 30))), "forecast": day}
    wide = demanded(load, 60, policy, **around)
    assert (wide.value, wide.needed) == (60, 30)
    assert "width can't help" in wide.held[0]
    assert demanded(load, 30, policy, **around).value == 30
    calm = dataclasses.replace(load, input_rate=3_000.0)
    assert demanded(calm, 60, policy, past=around["past"]).value == 30
