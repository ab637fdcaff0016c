"""Demand of a region with several stages: what one of them means for the others."""

import dataclasses

import pytest
from tests.autoscaler.loads import POLICY, STEADY, capacity, loaded

from streamgraft_autoscaler import NotReadyError, StageLoad, Surroundings, demand
from streamgraft_autoscaler.capacity import TRICKLE
from streamgraft_autoscaler.economy import Past
from streamgraft_autoscaler.forecast import Forecast
from streamgraft_autoscaler.pricing import ChangePrice


def test_the_slowest_stage_decides() -> None:
    slow = dataclasses.replace(STEADY, capacity=capacity(50.0))
    result = demand({"0": STEADY, "1": slow}, POLICY, Surroundings(1))
    assert (result.stage, result.value) == ("1", 8)


RARE = StageLoad(
    0.03, 0.0, largest_shard=1.0, capacity=dataclasses.replace(capacity(20.0), busy_share=TRICKLE)
)
"""A window has one record of it, if any: one shard gets all."""
EVENING = Past(1e5, ((90_000.0, 16), (3_000.0, 4)))


@pytest.mark.parametrize("day", [None, Forecast((4_000.0,) * 96, 0.05, trusted=True)])
def test_a_rare_stage_does_not_narrow_the_choice_of_the_others(day: Forecast | None) -> None:
    """8 channels of 500/s have 4,000/s to do, and 1,000/s leave 16 of them idle."""
    stages = {"0": StageLoad(4_000.0, 0.0, capacity=capacity(500.0, 8)), "1": RARE}
    around = Surroundings(8, EVENING, day)
    assert demand(stages, POLICY, around).value == 16
    stages["0"] = dataclasses.replace(stages["0"], input_rate=1_000.0)
    calm = dataclasses.replace(day, rates=(1_000.0,) * 96) if day else None
    assert demand(stages, POLICY, Surroundings(16, EVENING, calm)).value == 3


@pytest.mark.parametrize("rare", [RARE, dataclasses.replace(RARE, capacity=None)])
@pytest.mark.parametrize("day", [None, Forecast((390.0,) * 96, 0.05, trusted=True)])
@pytest.mark.parametrize("width", [1, 2, 4])
def test_a_stage_of_which_too_little_is_known_holds_no_other_back(
    rare: StageLoad, day: Forecast | None, width: int
) -> None:
    """390/s and a backlog need more than four channels, a record per window is a trickle."""
    around = Surroundings(width, forecast=day)
    behind = loaded(390.0, lag=50_000.0)
    found = demand({"0": behind, "1": rare}, POLICY, around)
    assert (found.value, found.stage) == (16, "0")
    with pytest.raises(NotReadyError, match="stage 1"):
        demand(
            {"0": StageLoad(0.0, 0.0), "1": dataclasses.replace(rare, capacity=None)},
            POLICY,
            around,
        )


def test_a_stage_of_which_nothing_is_known_keeps_the_width() -> None:
    """Fewer channels are enough for stage 0; whether they are for stage 1 nobody knows."""
    stages = {"0": loaded(50.0), "1": dataclasses.replace(STEADY, capacity=None)}
    found = demand(stages, POLICY, Surroundings(8, EVENING))
    assert (found.value, found.stage) == (8, "1")
    assert "width 8 is kept: what a channel can process of stage 1" in found.held[0]
    few = dataclasses.replace(POLICY, max_width=6)
    assert demand(stages, few, Surroundings(8, EVENING)).value == 6


@pytest.mark.parametrize(("width", "most", "rate"), [(12, 10, 300.0), (16, 17, 1_060.0)])
def test_what_such_a_stage_keeps_is_a_choice_though_the_shards_divide_as_well_by_fewer(
    width: int, most: int, rate: float
) -> None:
    """24 shards divide by 8 and by 12 as they do by what is between; the load is known for a day.
    The first region is wider than it may be, the second one crowded."""
    policy = dataclasses.replace(POLICY, max_width=most, shards=24, headroom=0.2)
    loss = 0.02 if most == 17 else 0.0
    known = dataclasses.replace(capacity(100.0, 12), loss_per_channel=loss, gain_per_channel=loss)
    stages = {
        "0": loaded(rate, largest_shard=1 / 24, capacity=known),
        "1": StageLoad(0.02, 0.0, largest_shard=1 / 24),
    }
    day = Forecast((500.0,) * 96, 0.1, trusted=True)
    found = demand(stages, policy, Surroundings(width, forecast=day))
    assert found.value == min(width, most)


def test_a_trickle_asks_for_no_wider_region() -> None:
    """Its rate is too small: at 2/s per channel, 100/s would need more channels than there are."""
    trickle = dataclasses.replace(capacity(2.0, width=4), busy_share=TRICKLE)
    found = demand(
        {"0": loaded(300.0), "1": StageLoad(100.0, 0.0, capacity=trickle)}, POLICY, Surroundings(4)
    )
    assert (found.value, found.stage, found.held) == (4, "0", ())
    assert found.stages["1"].grows_above == 0


def test_the_forecast_is_of_the_first_stage_in_whatever_order_they_come() -> None:
    """A tenth of its records reaches the second one."""
    stages = {
        "0": StageLoad(300.0, 0.0, capacity=capacity(500.0, 12)),
        "1": StageLoad(30.0, 0.0, capacity=capacity(500.0, 12)),
    }
    day = Forecast((300.0,) * 96, 0.05, trusted=True)
    around = Surroundings(12, Past(1e5, ((80_000.0, 12), (0.0, 1))), day)
    for order in (("0", "1"), ("1", "0")):
        found = demand({name: stages[name] for name in order}, POLICY, around)
        assert (found.value, found.stages["0"].ahead[0], found.stages["1"].ahead[0]) == (1, 1, 1)
    with pytest.raises(NotReadyError):
        demand({"1": stages["1"]}, POLICY, around)


IN_VAIN = StageLoad(200.0, 0.0, largest_shard=1.0, median_shard=0.0, capacity=capacity(100.0, 16))
"""One shard gets all, twice as much as its channel can do."""
AFTERNOON = Past(1e6, ((80_000.0, 16), (70_000.0, 2)))


@pytest.mark.parametrize("day", [None, Forecast((100.0,) * 96, 0.05, trusted=True)])
@pytest.mark.parametrize("width", [16, 2, 1])
def test_a_stage_that_no_width_helps_keeps_no_channels_for_it(
    width: int, day: Forecast | None
) -> None:
    """Stage 0 needs two: beyond that channels do nothing for either."""
    policy = dataclasses.replace(POLICY, headroom=0.25)
    stages = {"0": loaded(100.0), "1": IN_VAIN}
    found = demand(stages, policy, Surroundings(width, AFTERNOON, day))
    assert (found.value, found.needed) == (2, 2)
    assert any(
        reason.startswith("stage 1: width can't help: the fullest of 16 shards gets 100%")
        for reason in found.held
    )


def test_a_stage_that_no_width_helps_does_not_make_changes_of_others_cheaper() -> None:
    """Its channel is crowded at any width: that is no reason to leave the present one at once."""
    policy = dataclasses.replace(POLICY, price=ChangePrice.given(900.0))
    just_busy = Past(1e6, ((80_000.0, 16), (60.0, 8), (0.0, 2)))
    stages = {"0": loaded(100.0), "1": IN_VAIN}
    assert demand(stages, policy, Surroundings(8, just_busy)).value == 8


def test_what_the_present_width_does_more_of_is_kept_for_the_stage_in_vain() -> None:
    """At 16 channels the hot shard is alone, at 8 it has another beside it."""
    stages = {
        "0": loaded(50.0),
        "1": loaded(400.0, largest_shard=0.5, median_shard=1.0),
    }
    assert demand(stages, POLICY, Surroundings(16, AFTERNOON)).value == 16
    assert demand(stages, POLICY, Surroundings(8, AFTERNOON)).value == 8
