"""What a channel can process: learned from warm windows with load, from the highest load best."""

import pytest

from streamgraft_autoscaler import Capacity, CapacityLearner, Window
from streamgraft_autoscaler.capacity import (
    EXPIRY_SECONDS,
    MEMORY_WINDOWS,
    RETRY_SECONDS,
    GrowthLimit,
)

SECONDS = 60.0


def window(number: int, rate: float, busy: float, *, warm: float = 1.0, width: int = 1) -> Window:
    """Return the window with this number, of a load in records/s and busy channels; `warm`: share
    of the busy time."""
    return Window(number * SECONDS, SECONDS, rate, busy, busy * warm, width)


def learned(*windows: Window) -> Capacity:
    """Return what is known after these windows, which must be something."""
    learner = CapacityLearner()
    for item in windows:
        learner.observe(item)
    capacity = learner.capacity(windows[-1].ended_at)
    assert capacity is not None
    return capacity


def test_rate_is_records_per_busy_second_whatever_the_width() -> None:
    for width in (1, 2, 4):
        seen = learned(window(1, 150.0, 0.75 * width, width=width))
        assert seen.true_rate == pytest.approx(200.0 / width)


def test_cold_windows_teach_nothing() -> None:
    """The first batches of a PE take seconds for a handful of records."""
    learner = CapacityLearner()
    learner.observe(window(1, 13.0, 0.8, warm=0.0))
    assert learner.capacity(SECONDS) is None
    learner.observe(window(2, 700.0, 0.5))
    learner.observe(window(3, 13.0, 0.8, warm=0.5))
    known = learner.capacity(3 * SECONDS)
    assert known is not None
    assert known.true_rate == pytest.approx(1400.0)


def test_idle_windows_teach_nothing() -> None:
    learner = CapacityLearner()
    learner.observe(window(1, 1.0, 0.0))
    learner.observe(window(2, 0.0, 0.5))
    assert learner.capacity(2 * SECONDS) is None


def test_fixed_cost_of_small_batches_does_not_hide_what_high_load_showed() -> None:
    """0.07 busy channels of fixed cost: at low load the rate looks a third as large."""
    day, night = window(1, 900.0, 0.97), window(2, 40.0, 0.11)
    assert learned(night).true_rate == pytest.approx(364, rel=0.01)
    assert learned(day, night, window(3, 40.0, 0.11)).true_rate == pytest.approx(928, rel=0.01)


def test_batches_that_end_in_the_next_window_even_out() -> None:
    """Offsets and busy time move at a batch's end, not always in the same window."""
    pairs = [(150.0, 0.6), (50.0, 0.9), (100.0, 0.75)]
    windows = [window(number, *pairs[number % 3]) for number in range(30)]
    assert learned(*windows).true_rate == pytest.approx(133.3, rel=0.15)


def test_a_change_of_the_load_s_cost_is_learned_within_its_memory() -> None:
    old = [window(number, 100.0, 1.0) for number in range(100)]
    fresh = [window(100 + number, 50.0, 1.0) for number in range(int(3 * MEMORY_WINDOWS))]
    assert learned(*old).true_rate == pytest.approx(100.0)
    assert learned(*old, *fresh).true_rate == pytest.approx(50.0, rel=0.15)


def test_how_often_windows_are_looked_at_does_not_matter() -> None:
    def seen(period: float) -> Capacity:
        count = int(600 / period)
        return learned(
            *(
                Window(i * period, SECONDS, 100.0 if i * period < 300 else 50.0, 1.0, 1.0, 1)
                for i in range(1, count + 1)
            )
        )

    assert seen(2.0).true_rate == pytest.approx(seen(15.0).true_rate, rel=0.05)


def test_a_repeated_window_counts_once() -> None:
    first, other = window(1, 100.0, 1.0), window(2, 50.0, 1.0)
    assert learned(first, other, other, other) == learned(first, other)


def test_what_was_seen_long_ago_is_forgotten() -> None:
    learner = CapacityLearner()
    learner.observe(window(1, 100.0, 1.0))
    assert learner.capacity(SECONDS + EXPIRY_SECONDS) is not None
    assert learner.capacity(SECONDS + EXPIRY_SECONDS + 1) is None


def test_each_width_has_its_own_rate() -> None:
    seen = learned(window(1, 100.0, 1.0), window(2, 180.0, 2.0, width=2))
    assert seen.width == 2
    assert seen.true_rate == pytest.approx(90.0)
    assert seen.rate_at(3) == pytest.approx(80.0, rel=0.01)
    assert seen.rate_at(1) == pytest.approx(100.0, rel=0.01)
    assert seen.rate_at(100) == pytest.approx(45.0)
    assert seen.limit() is None


def test_growing_that_brings_nothing_is_seen() -> None:
    limit = learned(window(1, 100.0, 1.0), window(2, 104.0, 2.0, width=2)).limit()
    assert limit == GrowthLimit(1, RETRY_SECONDS - SECONDS)
    assert learned(window(1, 104.0, 2.0, width=2), window(2, 100.0, 1.0)).limit() is None


def test_growing_in_vain_is_tried_again_more_and_more_rarely() -> None:
    seen = [window(1, 100.0, 1.0), window(2, 104.0, 2.0, width=2)]
    assert learned(*seen, window(11, 104.0, 2.0, width=2)).limit() == GrowthLimit(3, 0.0)
    seen += [window(11, 104.0, 2.0, width=2), window(12, 104.0, 3.0, width=3)]
    assert learned(*seen).limit() == GrowthLimit(2, 2 * RETRY_SECONDS - SECONDS)
    assert learned(*seen, window(31, 104.0, 3.0, width=3)).limit() == GrowthLimit(5, 0.0)
    helped = learned(*seen, window(13, 150.0, 3.0, width=3))
    assert helped.limit() is None


def test_dearer_records_are_no_reason_to_stay_narrow_for_a_day() -> None:
    """A record costs five times as much, just before the region grows: it seems to be in vain, and
    is tried again. A width of an hour ago is not expected to be as quick as it was then."""
    learner = CapacityLearner()
    for number, (rate, width) in enumerate([(1000.0, 2)] * 9 + [(200.0, 5)] * 12, 1):
        learner.observe(window(number, rate * width, float(width), width=width))
    seen = learner.capacity(21 * SECONDS)
    assert seen is not None
    assert seen.limit() == GrowthLimit(8, 0.0)
    for number in range(22, 22 + 120):
        learner.observe(window(number, 1600.0, 8.0, width=8))
    later = learner.capacity(142 * SECONDS)
    assert later is not None
    assert later.limit() is None
    assert later.rate_at(5) == pytest.approx(200.0, rel=0.3)
    assert later.rate_at(3) < 350


def test_a_wide_region_at_a_low_load_takes_back_a_loss_that_was_expected() -> None:
    """Else it would stay wide: it is never loaded enough to show what its channels can do."""
    narrow = window(1, 90.0, 0.9), window(2, 120.0, 1.6, width=2)
    assert learned(*narrow).rate_at(6) == pytest.approx(37.5)
    seen = learned(*narrow, window(3, 200.0, 2.0, width=6))
    rates = [seen.rate_at(width) for width in (2, 3, 6, 8)]
    assert rates == pytest.approx([75.0, 100.0, 100.0, 37.5])


def test_a_low_load_does_not_contradict_what_the_same_width_did_at_a_high_one() -> None:
    """Channels that share a bottleneck are quick as long as nobody needs it."""
    crowded, calm = window(1, 300.0, 5.0, width=6), window(2, 200.0, 2.0, width=6)
    assert learned(crowded, calm).rate_at(6) == pytest.approx(60.0)


def test_a_low_load_of_earlier_says_nothing() -> None:
    calm, crowded = window(1, 200.0, 2.0, width=6), window(2, 120.0, 1.6, width=2)
    one = window(3, 90.0, 0.9)
    assert learned(calm, crowded, one).rate_at(6) == pytest.approx(50.0)
