"""The equations: their fixed points, limits and monotony, over all numbers."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgraft_autoscaler import (
    NotReadyError,
    Reason,
    RelativeLagChange,
    StageIdleness,
    TopicLag,
    TotalLag,
    gated_lag_change,
    relative_lag_change,
    total_lag,
    utilization,
)

records = st.floats(min_value=0, max_value=1e12)
rates = st.floats(min_value=1e-3, max_value=1e9)
changes = st.floats(min_value=-1e9, max_value=1e9)


def reason(compute: Callable[[], object]) -> Reason:
    """Return why something that must not be ready can't be computed."""
    with pytest.raises(NotReadyError) as caught:
        compute()
    return caught.value.reason


@given(st.lists(records, min_size=1, max_size=5))
def test_total_lag_is_the_sum_over_topics(lags: list[float]) -> None:
    topics = [TopicLag(str(index), lag, 4) for index, lag in enumerate(lags)]
    result = total_lag(topics, 4)
    assert result.value == pytest.approx(sum(lags))


@pytest.mark.parametrize("partitions", [0, 3, 5])
def test_total_lag_needs_every_partition(partitions: int) -> None:
    topics = [TopicLag("a", 1.0, 4), TopicLag("b", 1.0, partitions)]
    assert reason(lambda: total_lag(topics, 4)) is Reason.NO_DATA


def test_total_lag_of_nothing_is_not_zero() -> None:
    assert reason(lambda: total_lag([], 4)) is Reason.NO_DATA


@given(changes, rates)
def test_relative_lag_change_tells_the_direction(change: float, rate: float) -> None:
    result = relative_lag_change(change, rate)
    assert (result.value > 1) <= (change > 0)
    assert (result.value < 1) <= (change < 0)


@given(rates, rates)
def test_relative_lag_change_matches_width_to_load(arriving: float, processed: float) -> None:
    """Eq. 3 times the width is the width whose processing rate equals the arrival rate."""
    result = relative_lag_change(arriving - processed, processed)
    assert result.value * processed == pytest.approx(arriving, rel=1e-6, abs=1e-6 * processed)


def test_overshoot_multiplies_the_fraction() -> None:
    result = relative_lag_change(50.0, 100.0, overshoot=1.5)
    assert result.value == pytest.approx(1.75)


def test_idle_region_keeps_up_but_growing_lag_without_work_is_undefined() -> None:
    idle = relative_lag_change(0.0, 0.0)
    assert idle.value == 1.0
    assert reason(lambda: relative_lag_change(5.0, 0.0)) is Reason.UNDEFINED


@pytest.mark.parametrize(
    ("lag", "threshold", "expected"),
    [(1001.0, 1000.0, 1.5), (1000.0, 1000.0, -1.5), (999.0, 1000.0, -1.5), (0.0, 0.0, -1.5)],
)
def test_gate_is_open_above_the_threshold_only(
    lag: float, threshold: float, expected: float
) -> None:
    change = RelativeLagChange(1.5, 50.0, 100.0, 1.0)
    result = gated_lag_change(TotalLag(lag, ()), change, threshold)
    assert result.value == expected


@given(st.floats(min_value=-1, max_value=2))
def test_utilization_is_a_share(idle: float) -> None:
    result = utilization([StageIdleness(idle, 2)], 2)
    assert 0 <= result.value <= 1


def test_utilization_needs_every_element() -> None:
    assert reason(lambda: utilization([StageIdleness(0.5, 1)], 2)) is Reason.NO_DATA
    assert reason(lambda: utilization([], 0)) is Reason.NO_DATA


def test_utilization_weighs_stages() -> None:
    """By PEs, and by what each of them counts: a heavy stage of two PEs, a light one of one."""
    stages = [StageIdleness(0.2, 2, 3.0), StageIdleness(0.9, 1)]
    assert utilization(stages, 3).value == pytest.approx(1 - (2 * 3 * 0.2 + 0.9) / 7)
    assert utilization([*stages, StageIdleness(0.0, 1, 0.0)], 4).value == pytest.approx(
        utilization(stages, 3).value
    )
    assert reason(lambda: utilization([StageIdleness(0.2, 2, 0.0)], 2)) is Reason.INVALID


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_not_ready(bad: float) -> None:
    """Nothing that can't be computed comes out as a number."""
    computations: list[Callable[[], object]] = [
        lambda: total_lag([TopicLag("a", bad, 1)], 1),
        lambda: relative_lag_change(bad, 1.0),
        lambda: relative_lag_change(1.0, bad),
        lambda: utilization([StageIdleness(bad, 1)], 1),
    ]
    assert [reason(each) for each in computations] == [Reason.NOT_A_NUMBER] * len(computations)
