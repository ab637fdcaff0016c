"""The seasonal forecast: right on days that repeat, silent on those that don't."""

import math
from collections.abc import Iterable

import pytest

from streamgraft_autoscaler.forecast import BUCKET_SECONDS, Forecast, SeasonalForecaster

HOUR = 3600.0


def day(hour: float) -> float:
    """Return a rate: quiet until six, a peak at noon."""
    return 100.0 + 900.0 * max(0.0, math.sin((hour - 6) / 12 * math.pi))


def taught(hours: float, scale: float = 1.0, last_day: float = 1.0) -> Forecast | None:
    """Return what who saw so many hours foresees; the last day was `last_day` times as busy."""
    forecaster = SeasonalForecaster()
    for step in range(int(hours * HOUR / BUCKET_SECONDS)):
        hour = step * BUCKET_SECONDS / HOUR
        factor = last_day if hour >= hours - 24 else scale
        forecaster.observe(step * BUCKET_SECONDS, day(hour % 24) * factor)
    return forecaster.forecast(hours * HOUR - BUCKET_SECONDS)


def seen(rates: Iterable[float]) -> Forecast | None:
    """Return what who saw these rates, one in each quarter of an hour, foresees."""
    forecaster, now = SeasonalForecaster(), 0.0
    for step, rate in enumerate(rates):
        now = step * BUCKET_SECONDS
        forecaster.observe(now, rate)
    return forecaster.forecast(now)


def made(found: Forecast | None) -> Forecast:
    """Return a forecast, which there must be."""
    assert found is not None
    return found


def test_it_needs_two_days() -> None:
    assert taught(48) is None
    assert taught(48.25) is not None


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
    rates = (140.0 if step >= 3 * 96 + 52 else 100.0 for step in range(4 * 96 + 52))
    wavy, steady = made(taught(4 * 24 + 13, last_day=1.4)), made(seen(rates))
    assert 0.25 < steady.error < wavy.error
    assert (wavy.trusted, steady.trusted) == (True, False)


def test_a_steady_load_is_no_surprise() -> None:
    assert made(seen(100.0 + step % 7 for step in range(300))).trusted


def test_the_same_day_of_the_week_counts_once_it_is_known() -> None:
    """Every seventh day is quiet; after two weeks that is no surprise."""
    hours = (step * BUCKET_SECONDS / HOUR for step in range(15 * 96 - 4 * 4))
    rates = (day(hour % 24) * (0.2 if int(hour // 24) % 7 == 0 else 1.0) for hour in hours)
    assert made(seen(rates)).trusted


def test_whole_quarters_teach_the_same_as_what_is_seen_of_them() -> None:
    whole, part = SeasonalForecaster(), SeasonalForecaster()
    for step in range(3 * 96 + 1):
        rate = day(step * BUCKET_SECONDS / HOUR % 24)
        whole.learn(step, rate)
        for share in (0.5, 1.5):
            part.observe(step * BUCKET_SECONDS + share, rate * share)
    part.observe((3 * 96 + 1) * BUCKET_SECONDS, 0.0)
    now = (3 * 96 + 1) * BUCKET_SECONDS
    assert whole.forecast(now) == part.forecast(now) is not None


def test_a_quarter_is_learned_once() -> None:
    once, twice = SeasonalForecaster(), SeasonalForecaster()
    for step in range(3 * 96):
        once.learn(step, 100.0 + step % 7)
        for rate in (100.0 + step % 7, 5.0):
            twice.learn(step, rate)
    now = 3 * 96 * BUCKET_SECONDS
    assert once.forecast(now) == twice.forecast(now) is not None


def test_a_short_gap_is_bridged_by_a_straight_line() -> None:
    whole, bridged = SeasonalForecaster(), SeasonalForecaster()
    for step in range(3 * 96):
        whole.learn(step, float(step))
        if not 200 <= step < 204:
            bridged.learn(step, float(step))
    now = 3 * 96 * BUCKET_SECONDS
    assert whole.forecast(now) == bridged.forecast(now) is not None


def test_what_is_known_counts_for_an_hour() -> None:
    forecaster, known = SeasonalForecaster(), 3 * 96
    for step in range(known):
        forecaster.learn(step, 100.0 + step % 96)
    first, later = (made(forecaster.forecast((known + n) * BUCKET_SECONDS)) for n in (0, 4))
    assert later.rates == first.rates[4:]
    assert forecaster.forecast((known + 5) * BUCKET_SECONDS) is None


def test_a_longer_gap_begins_anew() -> None:
    forecaster = SeasonalForecaster()
    for step in range(3 * 96):
        forecaster.observe(step * BUCKET_SECONDS, 1.0)
    for hour in (100, 101):
        forecaster.observe(hour * HOUR, 1.0)
        assert forecaster.forecast(hour * HOUR) is None
