"""The equations: their fixed points, limits and monotony, over all numbers."""

import dataclasses
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgraft_autoscaler import (
    Demand,
    DemandPolicy,
    GatedLagChange,
    NotReady,
    Reason,
    RegionLoad,
    RelativeLagChange,
    StageLoad,
    TopicLag,
    TotalLag,
    Utilization,
    demand,
    gated_lag_change,
    relative_lag_change,
    total_lag,
    utilization,
)

# A busy machine is slow, not wrong.
settings.register_profile("untimed", deadline=None, max_examples=50)
settings.load_profile("untimed")

records = st.floats(min_value=0, max_value=1e12)
rates = st.floats(min_value=1e-3, max_value=1e9)
changes = st.floats(min_value=-1e9, max_value=1e9)
POLICY = DemandPolicy(
    min_width=1,
    max_width=8,
    target_utilization=0.8,
    catch_up_seconds=60.0,
    expected_pause_seconds=0.0,
)
# Two channels, busy for half of the time, process 100/s: one busy channel does 100/s.
STEADY = StageLoad(input_rate=100.0, lag=0.0, processing_rate=100.0, busy_channels=1.0)


def demanded(stage: StageLoad, policy: DemandPolicy = POLICY, width: int = 2) -> Demand:
    """Return the demand of a region with one stage, which must be ready."""
    result = demand(RegionLoad({"0": stage}, width), policy)
    assert isinstance(result, Demand)
    return result


def reason(result: object) -> Reason:
    """Return the reason of a result that must not be ready."""
    assert isinstance(result, NotReady)
    return result.reason


@given(st.lists(records, min_size=1, max_size=5))
def test_total_lag_is_the_sum_over_topics(lags: list[float]) -> None:
    topics = [TopicLag(str(index), lag, 4) for index, lag in enumerate(lags)]
    result = total_lag(topics, 4)
    assert isinstance(result, TotalLag)
    assert result.value == pytest.approx(sum(lags))


@pytest.mark.parametrize("partitions", [0, 3, 5])
def test_total_lag_needs_every_partition(partitions: int) -> None:
    result = total_lag([TopicLag("a", 1.0, 4), TopicLag("b", 1.0, partitions)], 4)
    assert reason(result) is Reason.NO_DATA


def test_total_lag_of_nothing_is_not_zero() -> None:
    assert reason(total_lag([], 4)) is Reason.NO_DATA


@given(changes, rates)
def test_relative_lag_change_tells_the_direction(change: float, rate: float) -> None:
    result = relative_lag_change(change, rate)
    assert isinstance(result, RelativeLagChange)
    assert (result.value > 1) <= (change > 0)
    assert (result.value < 1) <= (change < 0)


@given(rates, rates)
def test_relative_lag_change_matches_width_to_load(arriving: float, processed: float) -> None:
    """Eq. 3 times the width is the width whose processing rate equals the arrival rate."""
    result = relative_lag_change(arriving - processed, processed)
    assert isinstance(result, RelativeLagChange)
    assert result.value * processed == pytest.approx(arriving, rel=1e-6, abs=1e-6 * processed)


def test_overshoot_multiplies_the_fraction() -> None:
    result = relative_lag_change(50.0, 100.0, overshoot=1.5)
    assert isinstance(result, RelativeLagChange)
    assert result.value == pytest.approx(1.75)


def test_idle_region_keeps_up_but_growing_lag_without_work_is_undefined() -> None:
    idle = relative_lag_change(0.0, 0.0)
    assert isinstance(idle, RelativeLagChange)
    assert idle.value == 1.0
    assert reason(relative_lag_change(5.0, 0.0)) is Reason.UNDEFINED


@pytest.mark.parametrize(
    ("lag", "threshold", "expected"),
    [(1001.0, 1000.0, 1.5), (1000.0, 1000.0, -1.5), (999.0, 1000.0, -1.5), (0.0, 0.0, -1.5)],
)
def test_gate_is_open_above_the_threshold_only(
    lag: float, threshold: float, expected: float
) -> None:
    change = RelativeLagChange(1.5, 50.0, 100.0, 1.0)
    result = gated_lag_change(TotalLag(lag, ()), change, threshold)
    assert isinstance(result, GatedLagChange)
    assert result.value == expected


@given(st.floats(min_value=-1, max_value=2))
def test_utilization_is_a_share(idle: float) -> None:
    result = utilization(idle, 2, 2)
    assert isinstance(result, Utilization)
    assert 0 <= result.value <= 1


def test_utilization_needs_every_element() -> None:
    assert reason(utilization(0.5, 1, 2)) is Reason.NO_DATA


def test_demand_of_a_steady_load() -> None:
    """100/s at 100/s per busy channel and 80 % wanted: one and a quarter channels."""
    assert demanded(STEADY).value == pytest.approx(1.25)


def test_demand_adds_lag_and_pause() -> None:
    """600 waiting over 60 s are 10/s more; a pause of 6 s in 60 s is a tenth more."""
    policy = dataclasses.replace(POLICY, expected_pause_seconds=6.0)
    load = dataclasses.replace(STEADY, lag=600.0)
    assert demanded(load, policy).value == pytest.approx((100 + 10 + 10) / 80)


@given(rates, records, rates, st.floats(min_value=0.05, max_value=64), st.integers(1, 64))
def test_demand_stays_within_its_limits(
    arriving: float, lag: float, processed: float, busy: float, width: int
) -> None:
    load = RegionLoad({"0": StageLoad(arriving, lag, processed, busy, 1.0)}, width)
    result = demand(load, POLICY)
    assert isinstance(result, Demand)
    assert POLICY.min_width <= result.value <= POLICY.max_width


@given(rates, records, records)
def test_more_lag_never_asks_for_less(arriving: float, one: float, other: float) -> None:
    low, high = sorted((one, other))
    loads = [dataclasses.replace(STEADY, input_rate=arriving, lag=lag) for lag in (low, high)]
    assert demanded(loads[0]).value <= demanded(loads[1]).value


@given(st.integers(1, 64))
def test_demand_does_not_depend_on_the_width_that_runs(width: int) -> None:
    """The same records in the same busy time are the same true rate, however many channels idle."""
    load = dataclasses.replace(STEADY, last_true_rate=100.0)
    assert demanded(load, width=width).value == pytest.approx(1.25)


def test_demand_uses_the_last_true_rate_of_an_idle_region() -> None:
    idle = StageLoad(100.0, 0.0, 1.0, 0.001)
    assert reason(demand(RegionLoad({"0": idle}, 2), POLICY)) is Reason.NO_DATA
    known = demanded(dataclasses.replace(idle, last_true_rate=50.0))
    assert known.value == pytest.approx(2.5)
    assert not known.stages["0"].measured


def test_no_load_needs_the_least_width() -> None:
    assert demanded(StageLoad(0.0, 0.0, 0.0, 0.0)).value == POLICY.min_width


def test_the_slowest_stage_decides() -> None:
    slow = dataclasses.replace(STEADY, processing_rate=50.0)
    result = demand(RegionLoad({"0": STEADY, "1": slow}, 2), POLICY)
    assert isinstance(result, Demand)
    assert result.stage == "1"
    assert result.value == pytest.approx(2.5)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_not_ready(bad: float) -> None:
    """Nothing that can't be computed comes out as a number."""
    results = [
        total_lag([TopicLag("a", bad, 1)], 1),
        relative_lag_change(bad, 1.0),
        relative_lag_change(1.0, bad),
        utilization(bad, 1, 1),
        demand(RegionLoad({"0": dataclasses.replace(STEADY, input_rate=bad)}, 1), POLICY),
        demand(RegionLoad({"0": dataclasses.replace(STEADY, busy_channels=bad)}, 1), POLICY),
    ]
    assert [reason(result) for result in results] == [Reason.NOT_A_NUMBER] * len(results)
