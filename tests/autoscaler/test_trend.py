"""What counts as growth: what goes on, and nothing else."""

from collections.abc import Callable

import pytest

from streamgraft_autoscaler.trend import Trend


def growth(rate: Callable[[float], float], minutes: int = 60) -> float:
    """Return the growth after so many minutes of a rate per minute, looked at every 15 s."""
    trend = Trend()
    for look in range(minutes * 4 + 1):
        trend.observe(1e9 + look * 15.0, rate(look / 4))
    return trend.growth()


def test_a_ramp_grows_by_its_share_per_hour() -> None:
    assert growth(lambda minute: 100 + 5 * minute) == pytest.approx(300 / 400)


def test_a_jump_a_spike_and_a_decline_are_no_growth() -> None:
    assert growth(lambda minute: 400.0 if minute > 40 else 100.0) == 0.0
    assert growth(lambda minute: 400.0 if minute > 50 else 100.0) == 0.0
    assert growth(lambda minute: 400.0 if minute == 60 else 100.0) == 0.0
    assert growth(lambda minute: 400 - minute) == 0.0
    assert growth(lambda minute: 0.0) == 0.0


def test_half_an_hour_is_needed_and_a_gap_begins_anew() -> None:
    assert growth(lambda minute: 100 + minute, minutes=29) == 0.0
    assert growth(lambda minute: 100 + minute, minutes=30) > 0.0
    trend = Trend()
    for minute in range(60):
        trend.observe(minute * 60.0, 100.0 + minute)
    assert trend.growth() > 0.0
    trend.observe(75 * 60.0, 175.0)
    assert trend.growth() == 0.0
