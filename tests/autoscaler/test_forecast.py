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


def made(forecaster: SeasonalForecaster) -> Forecast:
    """Return a forecast, which there must be."""
    found = forecaster.forecast()
    assert found is not None
    return found


def test_it_needs_two_days() -> None:
    assert taught(48).forecast() is None
    assert taught(48.25).forecast() is not None


def test_the_morning_is_seen_before_it_comes() -> None:
    before_six = made(taught(4 * 24 + 5.75))
    assert len(before_six.rates) == 96
    # The newest quarter is not over yet, so the first one is that before six.
    assert before_six.rates[4] == pytest.approx(day(6.5), rel=0.1)
    assert before_six.rates[24] == pytest.approx(day(11.5), rel=0.1)
    assert before_six.trusted


def test_it_follows_the_level_of_the_day() -> None:
    usual, busier = made(taught(4 * 24 + 12)), made(taught(4 * 24 + 12, last_day=1.2))
    assert usual.rates[0] * 1.05 < busier.rates[0] <= usual.rates[0] * 1.25


def test_a_day_like_no_other_is_not_trusted() -> None:
    found = made(taught(4 * 24 + 15, last_day=2.0))
    assert found.error > 0.25
    assert not found.trusted


def test_an_error_is_small_or_large_beside_what_the_day_does() -> None:
    """A day that goes up and down by half is worth being wrong by a third; a steady one is not."""
    wavy, steady = taught(4 * 24 + 13, last_day=1.4), SeasonalForecaster()
    for step in range(4 * 96 + 52):
        steady.observe(step * BUCKET_SECONDS, 140.0 if step >= 3 * 96 + 52 else 100.0)
    assert 0.25 < made(steady).error < made(wavy).error
    assert (made(wavy).trusted, made(steady).trusted) == (True, False)


def test_a_steady_load_is_no_surprise() -> None:
    forecaster = SeasonalForecaster()
    for step in range(300):
        forecaster.observe(step * BUCKET_SECONDS, 100.0 + step % 7)
    assert made(forecaster).trusted


def test_the_same_day_of_the_week_counts_once_it_is_known() -> None:
    """Every seventh day is quiet; after two weeks that is no surprise."""
    forecaster = SeasonalForecaster()
    for step in range(15 * 96 - 4 * 4):
        hour = step * BUCKET_SECONDS / HOUR
        quiet = 0.2 if int(hour // 24) % 7 == 0 else 1.0
        forecaster.observe(step * BUCKET_SECONDS, day(hour % 24) * quiet)
    assert made(forecaster).trusted


def test_a_gap_begins_anew() -> None:
    forecaster = taught(72)
    forecaster.observe(100 * HOUR, 1.0)
    assert forecaster.forecast() is None
