"""The seasonal forecast: right on days that repeat, silent on those that don't."""

import math

import pytest

from streamgraft_autoscaler.forecast import BUCKET_SECONDS, Forecast, SeasonalForecaster

HOUR = 3600.0


def day(hour: float) -> float:
    """Return a rate: quiet until six, a peak at noon."""
    return 100.0 + 900.0 * max(0.0, math.sin((hour - 6) / 12 * math.pi))


def taught(hours: float, scale: float = 1.0, last_day: float = 1.0) -> SeasonalForecaster:
    """Return a forecaster that saw so many hours; the last day was `last_day` times as busy."""
    forecaster = SeasonalForecaster()
    for step in range(int(hours * HOUR / BUCKET_SECONDS)):
        hour = step * BUCKET_SECONDS / HOUR
        factor = last_day if hour >= hours - 24 else scale
        forecaster.observe(step * BUCKET_SECONDS, day(hour % 24) * factor)
    return forecaster


def made(forecaster: SeasonalForecaster, horizon: float) -> Forecast:
    """Return a forecast, which there must be."""
    found = forecaster.forecast(horizon)
    assert found is not None
    return found


def test_it_needs_two_days() -> None:
    assert taught(47).forecast(HOUR) is None
    assert taught(49).forecast(HOUR) is not None


def test_the_morning_is_seen_before_it_comes() -> None:
    before_six = taught(4 * 24 + 5.75)
    assert made(before_six, HOUR).rate == pytest.approx(day(6.5), rel=0.1)
    assert made(before_six, 6 * HOUR).rate == pytest.approx(day(11.5), rel=0.1)
    assert made(before_six, HOUR).trusted


def test_it_follows_the_level_of_the_day() -> None:
    usual, busier = taught(4 * 24 + 12), taught(4 * 24 + 12, last_day=1.2)
    assert made(busier, 0.0).rate == pytest.approx(1.2 * made(usual, 0.0).rate, rel=0.1)


def test_a_day_like_no_other_is_not_trusted() -> None:
    found = made(taught(4 * 24, last_day=2.0), HOUR)
    assert found.error == pytest.approx(0.5, rel=0.1)
    assert not found.trusted


def test_a_gap_begins_anew() -> None:
    forecaster = taught(72)
    forecaster.observe(100 * HOUR, 1.0)
    assert forecaster.forecast(HOUR) is None
