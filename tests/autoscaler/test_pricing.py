"""What a width change costs: as asked for, as measured, or as assumed."""

import pytest

from streamgraft_autoscaler.pricing import (
    ASSUMED_CHANNEL_SECONDS,
    LATEST_CHANGES,
    ChangePrice,
    MeasuredChange,
    measured_price,
)

QUICK = MeasuredChange(channels=1, idle_seconds=30.0, still_channels=1.0)


def test_a_price_that_was_asked_for_grows_with_the_region() -> None:
    price = ChangePrice.given(2700.0)
    assert price.hours(1) == 0.75
    assert price.hours(12) == 9.0
    assert ChangePrice.given(0.0).hours(12) == 0.0


def test_idle_channels_and_standing_shards_cost() -> None:
    """Thirty seconds of one channel, and a channel's records delayed by a second, ten times."""
    price = measured_price([QUICK], pause_seconds=1.0)
    assert price.channel_seconds == 40.0
    assert price.hours(1) == price.hours(12) == pytest.approx(40 / 3600)
    assert "measured in 1 changes" in price.reason


def test_large_state_and_slow_nodes_make_changes_dear() -> None:
    cheap = measured_price([QUICK], pause_seconds=0.5).channel_seconds
    slow_state = measured_price([QUICK], pause_seconds=90.0).channel_seconds
    slow_nodes = measured_price([MeasuredChange(2, 240.0, 1.0)], pause_seconds=0.5).channel_seconds
    assert slow_state > 20 * cheap
    assert slow_nodes > 10 * cheap


def test_who_slept_had_its_records_wait() -> None:
    woken = measured_price([MeasuredChange(1, 20.0, 1.0, woke=True)], pause_seconds=0.0)
    assert woken.channel_seconds == 220.0


def test_the_newest_changes_count_and_one_odd_one_does_not() -> None:
    old = [MeasuredChange(1, 900.0, 1.0)] * LATEST_CHANGES
    odd = MeasuredChange(1, 3000.0, 1.0)
    found = measured_price([*old, *[QUICK] * (LATEST_CHANGES - 1), odd], pause_seconds=1.0)
    assert found.channel_seconds == 40.0


def test_without_a_change_it_is_assumed() -> None:
    price = measured_price([], pause_seconds=1.0)
    assert price.channel_seconds == ASSUMED_CHANNEL_SECONDS
    assert "assumed" in price.reason
