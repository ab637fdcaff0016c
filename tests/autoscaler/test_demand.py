"""Demand: fixed points, limits and monotony, over all numbers."""

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgraft_autoscaler import (
    Capacity,
    Demand,
    DemandPolicy,
    NotReady,
    Reason,
    StageLoad,
    demand,
)

records = st.floats(min_value=0, max_value=1e12)
rates = st.floats(min_value=1e-3, max_value=1e9)
POLICY = DemandPolicy(
    min_width=1,
    max_width=8,
    target_utilization=0.8,
    catch_up_seconds=60.0,
    expected_pause_seconds=0.0,
)
STEADY = StageLoad(input_rate=100.0, lag=0.0, capacity=Capacity(100.0, 0.5, 0.0))


def demanded(stage: StageLoad, policy: DemandPolicy = POLICY) -> Demand:
    """Return the demand of a region with one stage, which must be ready."""
    result = demand({"0": stage}, policy)
    assert isinstance(result, Demand)
    return result


def reason(stage: StageLoad) -> Reason:
    """Return why the demand of a region with one stage has no value."""
    result = demand({"0": stage}, POLICY)
    assert isinstance(result, NotReady)
    return result.reason


def test_steady_load() -> None:
    """100/s at 100/s per busy channel and 80 % wanted: one and a quarter channels."""
    assert demanded(STEADY).value == pytest.approx(1.25)


def test_lag_and_pause_are_added() -> None:
    """600 waiting over 60 s are 10/s more; a pause of 6 s in 60 s is a tenth more."""
    policy = dataclasses.replace(POLICY, expected_pause_seconds=6.0)
    load = dataclasses.replace(STEADY, lag=600.0)
    assert demanded(load, policy).value == pytest.approx((100 + 10 + 10) / 80)


def test_records_of_two_batches_do_not_wait() -> None:
    load = dataclasses.replace(STEADY, lag=500.0, batch_seconds=2.5)
    assert demanded(load).value == pytest.approx(1.25)
    more = dataclasses.replace(load, lag=560.0)
    assert demanded(more).value == pytest.approx(101 / 80)


def test_long_batches_hide_no_backlog_beyond_the_catch_up_time() -> None:
    load = dataclasses.replace(STEADY, lag=12_000.0, batch_seconds=1e6)
    assert demanded(load).stages["0"].backlog == pytest.approx(6_000)


@given(rates, records, rates, st.floats(min_value=0, max_value=1e4))
def test_value_stays_within_its_limits(
    arriving: float, lag: float, true_rate: float, batch_seconds: float
) -> None:
    load = StageLoad(arriving, lag, batch_seconds, Capacity(true_rate, 0.5, 0.0))
    assert POLICY.min_width <= demanded(load).value <= POLICY.max_width


@given(rates, records, records)
def test_more_lag_never_asks_for_less(arriving: float, one: float, other: float) -> None:
    low, high = sorted((one, other))
    loads = [dataclasses.replace(STEADY, input_rate=arriving, lag=lag) for lag in (low, high)]
    assert demanded(loads[0]).value <= demanded(loads[1]).value


def test_unknown_capacity_is_a_reason() -> None:
    assert reason(StageLoad(100.0, 0.0)) is Reason.WARMING_UP


def test_no_load_needs_the_least_width_and_no_capacity() -> None:
    assert demanded(StageLoad(0.0, 0.0)).value == POLICY.min_width


def test_the_slowest_stage_decides() -> None:
    slow = dataclasses.replace(STEADY, capacity=Capacity(50.0, 0.5, 0.0))
    result = demand({"0": STEADY, "1": slow}, POLICY)
    assert isinstance(result, Demand)
    assert result.stage == "1"
    assert result.value == pytest.approx(2.5)


def test_no_stage_is_not_ready() -> None:
    assert isinstance(demand({}, POLICY), NotReady)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_not_ready(bad: float) -> None:
    capacity = STEADY.capacity
    loads = [
        StageLoad(bad, 0.0, 0.0, capacity),
        StageLoad(1.0, bad, 0.0, capacity),
        StageLoad(1.0, 0.0, bad, capacity),
    ]
    assert [reason(load) for load in loads] == [Reason.NOT_A_NUMBER] * len(loads)
