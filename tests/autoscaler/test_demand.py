"""Demand: fixed points, limits and monotony, and what else than the load decides."""

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.autoscaler.loads import POLICY, STEADY, capacity, demanded, loaded

from streamgraft_autoscaler import (
    Capacity,
    Demand,
    NotReadyError,
    Reason,
    StageLoad,
    Surroundings,
    demand,
    expected_demand,
)
from streamgraft_autoscaler.capacity import TRICKLE
from streamgraft_autoscaler.economy import Past
from streamgraft_autoscaler.forecast import Forecast
from streamgraft_autoscaler.pause import ExpectedPause
from streamgraft_autoscaler.pricing import ChangePrice
from streamgraft_autoscaler.propagation import Neighbourhood

records = st.floats(min_value=0, max_value=1e12)
rates = st.floats(min_value=1e-3, max_value=1e9)
widths = st.integers(1, 16)


def reason(stage: StageLoad) -> Reason:
    """Return why the demand of a region with one stage has no value."""
    with pytest.raises(NotReadyError) as caught:
        demand({"0": stage}, POLICY, Surroundings(1))
    return caught.value.reason


def test_steady_load_is_divided_by_what_a_channel_may_do() -> None:
    result = demanded(STEADY)
    assert result.stages["0"].channels == pytest.approx(300 / 80)
    assert result.value == 4


def test_lag_and_pause_are_added() -> None:
    """600 waiting over 60 s are 10/s more; a pause of 6 s in 60 s is a tenth more."""
    policy = dataclasses.replace(POLICY, pause=ExpectedPause(6.0, 6.0, 0.0, 1))
    result = demanded(loaded(100.0, lag=600.0), policy=policy)
    assert result.stages["0"].work == pytest.approx(100 + 10 + 10)
    outage = dataclasses.replace(POLICY, pause=ExpectedPause(3300.0, 3300.0, 0.0, 1))
    assert demanded(loaded(100.0), policy=outage).stages["0"].work == pytest.approx(100 + 100)


def test_records_of_two_batches_do_not_wait() -> None:
    assert demanded(loaded(100.0, lag=500.0, batch_seconds=2.5)).stages["0"].backlog == 0
    late = demanded(loaded(100.0, lag=560.0, batch_seconds=2.5)).stages["0"]
    assert late.backlog == pytest.approx(60)


def test_long_batches_hide_no_backlog_beyond_the_catch_up_time() -> None:
    found = demanded(loaded(100.0, lag=12_000.0, batch_seconds=1e6)).stages["0"]
    assert found.backlog == pytest.approx(6_000)


@given(rates, records, rates, st.floats(min_value=0, max_value=1e4), widths)
def test_value_stays_within_its_limits(
    arriving: float, lag: float, true_rate: float, batch_seconds: float, width: int
) -> None:
    policy = dataclasses.replace(POLICY, min_width=2, max_width=7)
    load = StageLoad(arriving, lag, batch_seconds, 0.0, capacity(true_rate))
    assert 2 <= demanded(load, width, policy).value <= 7


@given(rates, records, records, widths)
def test_more_lag_never_asks_for_less(
    arriving: float, one: float, other: float, width: int
) -> None:
    low, high = sorted((one, other))
    values = [demanded(loaded(arriving, lag=lag), width).value for lag in (low, high)]
    assert values[0] <= values[1]


@given(st.floats(1.0, 1500.0), widths)
def test_one_step_is_enough(arriving: float, width: int) -> None:
    """At the width that is asked for, nothing else is asked for: no second step, no oscillation."""
    first = demanded(loaded(arriving), width).value
    assert demanded(loaded(arriving), int(first)).value == first


@given(st.floats(1.0, 1200.0), widths)
def test_the_fullest_channel_is_never_crowded(arriving: float, width: int) -> None:
    value = int(demanded(loaded(arriving), width).value)
    assert arriving * math.ceil(16 / value) / 16 / 100 <= POLICY.target.full


def test_a_width_that_divides_no_better_is_not_chosen() -> None:
    """Of 16 shards, 5 to 7 channels leave one with as many as 4 or 6 do."""
    values = {demanded(loaded(rate)).value for rate in range(10, 1280, 10)}
    assert values == {1, 2, 3, 4, 6, 8, 16}


def test_the_present_width_is_kept_until_it_is_crowded() -> None:
    """The target is 80 %, crowded is 95 %."""
    kept = demanded(loaded(94.0), width=1)
    assert (kept.value, kept.needed) == (1, 2)
    assert "at most 95% busy" in kept.held[0]
    assert demanded(loaded(96.0), width=1).value == 2
    assert demanded(loaded(81.0), width=2).value == 2
    assert demanded(loaded(79.0), width=2).value == 1


def test_headroom_lets_the_load_change_before_the_width_does() -> None:
    roomy = dataclasses.replace(POLICY, headroom=1.0)
    assert demanded(loaded(94.0), 1, roomy).value == 1
    assert demanded(loaded(96.0), 1, roomy).value == 3
    assert demanded(loaded(240.0), 3, roomy).value == 3
    assert demanded(loaded(81.0), 3, roomy).value == 3
    assert demanded(loaded(79.0), 3, roomy).value == 2
    assert demanded(loaded(1200.0), 3, roomy).value == 16


def test_fewer_channels_are_wanted_once_they_have_paid_for_the_change() -> None:
    """From 4 to 1: a quarter of an hour of 4 channels is an hour of one; 3 save it in 20 min."""
    policy = dataclasses.replace(POLICY, price=ChangePrice.given(900.0))
    early = demanded(loaded(70.0), 4, policy, past=Past(1140.0, ((1140.0, 4), (1139.0, 1))))
    assert early.value == 4
    assert "1 would do now" in early.held[0]
    assert "lasts 20 min" in early.held[0]
    late = demanded(loaded(70.0), 4, policy, past=Past(1260.0, ((1260.0, 4), (1259.0, 1))))
    assert late.value == 1


def test_after_a_restart_nothing_is_known_and_nothing_shrinks() -> None:
    policy = dataclasses.replace(POLICY, price=ChangePrice.given(900.0))
    assert demanded(loaded(70.0), 4, policy).value == 4
    assert demanded(loaded(390.0), 4, policy).value == 6


@pytest.mark.parametrize(
    ("load", "width", "grows"),
    [
        (loaded(90.0), 1, 95.0),
        (loaded(390.0), 8, 760.0),
        (loaded(390.0), 16, 0.0),
        (loaded(390.0, largest_shard=0.5), 8, 0.0),
        (loaded(390.0, capacity=capacity(51.0, 4, at_2=100.0)), 4, 0.0),
    ],
    ids=["one", "eight", "the widest", "the widest that helps", "growing brought nothing"],
)
def test_a_load_at_which_it_grows_is_told_only_where_it_can(
    load: StageLoad, width: int, grows: float
) -> None:
    assert demanded(load, width).stages["0"].grows_above == pytest.approx(grows)


def test_channels_that_slow_each_other_down_are_allowed_for() -> None:
    """Two channels did 100/s each, four do 90/s: eight are expected to do 70/s each."""
    slower = capacity(90.0, 4, at_2=100.0)
    assert slower.rate_at(8) == pytest.approx(90 * (1 - 4 * (100 / 90 - 1) / 2))
    needs = loaded(500.0, capacity=slower)
    assert demanded(loaded(500.0, capacity=capacity(90.0, 4)), 4).value == 8
    assert demanded(needs, 4).value == 16


def test_growing_that_brought_nothing_is_not_repeated() -> None:
    """Two channels did 100/s each, four do 51/s each: a service behind them is full."""
    full = capacity(51.0, 4, at_2=100.0)
    result = demanded(loaded(500.0, capacity=full), 4)
    assert result.value == 4
    assert "next to nothing" in result.held[-1]
    assert result.held[-1].endswith("not widened for another 10 min")


def test_a_growth_that_brought_nothing_is_tried_again_by_half() -> None:
    """Records may have become dearer just then: a day at too few channels would be lost."""
    full = dataclasses.replace(capacity(51.0, 4, at_2=100.0), last_seen={2: -600.0, 4: 0.0})
    result = demanded(loaded(500.0, capacity=full), 4)
    assert result.value == 6
    assert result.held[-1].endswith("not widened beyond 6, which is tried now")


@pytest.mark.parametrize(("width", "value"), [(0, 2), (1, 2), (3, 3)])
def test_a_narrower_region_grows_as_far_as_that_helped(width: int, value: int) -> None:
    """One that sleeps above all: it would never learn anything else."""
    full = capacity(51.0, 4, at_2=100.0)
    policy = dataclasses.replace(POLICY, min_width=0)
    result = demanded(loaded(500.0, capacity=full), width, policy)
    assert result.value == value
    assert "growing to 4 channels brought next to nothing" in result.held[-1]


def test_a_forecast_decides_where_the_load_leaves_a_choice() -> None:
    """At 300/s 4 channels are needed; soon it will be 700/s for long, or hardly anything."""
    policy = dataclasses.replace(POLICY, price=ChangePrice.given(1800.0))
    rising = Forecast((300.0, *[700.0] * 95), 0.05, trusted=True)
    assert demanded(loaded(300.0), 1, policy, forecast=rising).value == 8
    falling = Forecast((300.0, *[50.0] * 95), 0.05, trusted=True)
    assert demanded(loaded(300.0), 1, policy, forecast=falling).value == 4
    assert demanded(loaded(60.0), 8, policy, forecast=falling).value == 4
    dip = Forecast((300.0, 300.0, *[700.0] * 94), 0.05, trusted=True)
    kept = demanded(loaded(300.0), 8, policy, forecast=dip)
    assert kept.value == 8
    assert "the day to come" in kept.held[-1]


def test_what_is_expected_is_the_most_of_the_next_half_hour() -> None:
    """At 300/s 4 channels are needed; 8 can take 700/s, which is 10 % more than planned."""
    calm = demanded(loaded(300.0), 4)
    assert expected_demand(calm).value == calm.value == 4
    rising = Forecast((300.0, 300.0, *[700.0] * 94), 0.05, trusted=True)
    soon = expected_demand(demanded(loaded(300.0), 4, forecast=rising))
    assert (soon.value, soon.ahead, soon.needed) == (8, 8, 4)
    later = Forecast((*[300.0] * 4, *[700.0] * 92), 0.05, trusted=True)
    assert expected_demand(demanded(loaded(300.0), 4, forecast=later)).value < 8
    falling = Forecast((300.0, *[50.0] * 95), 0.05, trusted=True)
    assert expected_demand(demanded(loaded(300.0), 4, forecast=falling)).value == 4
    limited = dataclasses.replace(POLICY, max_width=6)
    assert expected_demand(demanded(loaded(300.0), 4, limited, forecast=rising)).value == 6
    assert expected_demand(calm, scheduled=9).value == 9
    assert expected_demand(calm, scheduled=2).value == 4


@pytest.mark.parametrize(
    ("stuck", "width"),
    [
        (capacity(51.0, 4, at_2=100.0), 6),
        (dataclasses.replace(capacity(51.0, 4, at_2=100.0), last_seen={2: -600.0}), 6),
        (capacity(51.0, 4, at_1=200.0, at_2=100.0, at_3=67.0), 4),
    ],
    ids=["tried in ten minutes", "tried now", "tried in forty minutes"],
)
def test_no_width_is_expected_that_a_region_may_not_have(stuck: Capacity, width: int) -> None:
    """Four channels did as little as two: the next try is of six."""
    found = demanded(loaded(500.0, capacity=stuck), 4)
    assert found.needed == 16
    assert (expected_demand(found).value, expected_demand(found, 9).value) == (width, 9)
    day = Forecast((500.0,) * 96, 0.05, trusted=True)
    assert expected_demand(demanded(loaded(500.0, capacity=stuck), 4, forecast=day)).value == width


def test_a_load_that_grows_is_expected_to_go_on() -> None:
    """By half in an hour, so by a quarter in half an hour: once it is crowded that is too late."""
    growing = Past(86_400.0, ((0.0, 4),), growth=0.5)
    found = expected_demand(demanded(loaded(300.0), 4, past=growing))
    assert (found.wanted, found.needed, found.growing, found.value) == (4, 4, 5, 5)
    limited = dataclasses.replace(POLICY, max_width=4)
    assert expected_demand(demanded(loaded(300.0), 4, limited, past=growing)).value == 4
    asleep = demanded(NOTHING, 0, SLEEPY, past=growing)
    assert expected_demand(asleep).value == 0


def test_neighbours_raise_and_cap_the_work() -> None:
    grown = demand({"0": loaded(100.0)}, POLICY, Surroundings(1, neighbourhood=Neighbourhood(3.0)))
    assert isinstance(grown, Demand)
    assert grown.value == 4
    capped = Surroundings(1, neighbourhood=Neighbourhood(1.0, 0.25, "below"))
    result = demand({"0": loaded(300.0)}, POLICY, capped)
    assert result.value == 1
    assert "region below" in result.held[0]


def test_unknown_capacity_is_a_reason() -> None:
    assert reason(StageLoad(100.0, 0.0)) is Reason.WARMING_UP


def test_a_trickle_makes_a_wide_region_narrow_and_none_wide() -> None:
    """It shows too small a rate; a region that is wider still than that asks for is too wide."""
    trickle = dataclasses.replace(capacity(2.0, width=12), busy_share=TRICKLE)
    one = StageLoad(1.0, 0.0, capacity=trickle)
    known = Past(86_400.0, ((0.0, 1),))
    assert demanded(one, 12, past=known).value == 1
    for load, width in ((StageLoad(100.0, 0.0, capacity=trickle), 12), (one, 1)):
        with pytest.raises(NotReadyError) as caught:
            demanded(load, width, past=known)
        assert caught.value.reason is Reason.WARMING_UP


def test_no_load_needs_the_least_width_and_no_capacity() -> None:
    assert demanded(StageLoad(0.0, 0.0)).value == POLICY.min_width


def test_fewer_channels_that_do_more_are_chosen_from_a_crowded_width() -> None:
    """Eight share something that three would do better with, as four did."""
    crowded = loaded(250.0, capacity=capacity(30.0, 8, at_4=100.0))
    found = demanded(crowded, 8)
    assert found.stages["0"].busy_share > 1
    assert found.value == 3


def test_no_stage_is_not_ready() -> None:
    with pytest.raises(NotReadyError):
        demand({}, POLICY, Surroundings(1))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_not_ready(bad: float) -> None:
    loads = [
        StageLoad(bad, 0.0, 0.0, 0.0, capacity()),
        StageLoad(1.0, bad, 0.0, 0.0, capacity()),
        StageLoad(1.0, 0.0, bad, 0.0, capacity()),
        StageLoad(1.0, 0.0, 0.0, bad, capacity()),
    ]
    assert [reason(load) for load in loads] == [Reason.NOT_A_NUMBER] * len(loads)


SLEEPY = dataclasses.replace(POLICY, min_width=0)
NOTHING = StageLoad(input_rate=0.0, lag=0.0)


def test_without_records_it_falls_asleep_and_sleeps_on() -> None:
    assert demanded(dataclasses.replace(NOTHING, capacity=capacity()), 3, SLEEPY).value == 0
    assert demanded(NOTHING, 1, SLEEPY).value == 0
    assert demanded(NOTHING, 0, SLEEPY).value == 0
    assert demanded(NOTHING, 1, POLICY).value == 1


def test_one_record_keeps_it_awake_and_wakes_it() -> None:
    for known in (None, capacity()):
        one = dataclasses.replace(NOTHING, lag=1.0, capacity=known)
        assert demanded(one, 0, SLEEPY).value == 1
    rare = StageLoad(input_rate=1 / 900, lag=0.0, capacity=capacity())
    assert demanded(rare, 1, SLEEPY).value == 1


def test_it_wakes_up_to_the_width_that_its_backlog_needs() -> None:
    waiting = StageLoad(input_rate=0.0, lag=60 * 100.0 * 0.8 * 3, capacity=capacity())
    assert demanded(waiting, 0, SLEEPY).needed == demanded(waiting, 1, SLEEPY).needed >= 3


def test_sleep_must_be_worth_a_change() -> None:
    paid = dataclasses.replace(SLEEPY, price=ChangePrice.given(600.0))
    load = dataclasses.replace(NOTHING, capacity=capacity())
    just_busy = Past(known_seconds=1e5, peaks=((300.0, 1),))
    held = demanded(load, 1, paid, past=just_busy)
    assert held.value == 1
    assert "only if that lasts 10 min" in held.held[-1]
    assert demanded(load, 1, paid, past=Past(1e5, ((700.0, 1), (0.0, 0)))).value == 0


@pytest.mark.parametrize(("rate", "width"), [(0.0, 0), (50.0, 1)])
def test_a_day_without_records_is_slept_through(rate: float, width: int) -> None:
    paid = dataclasses.replace(SLEEPY, price=ChangePrice.given(600.0))
    load = dataclasses.replace(NOTHING, capacity=capacity())
    day, past = Forecast((rate,) * 96, 0.0, True), Past(1e5, ((700.0, 1),))
    assert demanded(load, 1, paid, past=past, forecast=day).value == width


def test_a_forecast_does_not_keep_a_record_waiting() -> None:
    one = dataclasses.replace(NOTHING, lag=1.0)
    assert demanded(one, 0, SLEEPY, forecast=Forecast((0.0,) * 96, 0.0, True)).value == 1
