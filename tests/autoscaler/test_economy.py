"""When a width change pays: against brute force, and as stories."""

import itertools
from functools import partial
from operator import truediv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgraft_autoscaler.economy import (
    UNKNOWN,
    Needs,
    Past,
    Situation,
    cheapest,
    choose,
    wait_seconds,
)
from streamgraft_autoscaler.fitting import Shards, Target, fit

WIDTHS = (1, 2, 4)


def remembered(*needs: int, every: float = 60.0) -> Past:
    """Return what is remembered after these needs, the last of them now."""
    memory = Needs()
    for index, width in enumerate(needs):
        memory.observe(1000.0 + index * every, width)
    return memory.past(1000.0 + (len(needs) - 1) * every)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=40), st.integers(0, 45))
def test_the_largest_need_of_any_time_is_known(needs: list[int], minutes: int) -> None:
    past = remembered(*needs)
    if minutes > len(needs) - 1:
        assert past.most_within(60.0 * minutes) is None
    else:
        assert past.most_within(60.0 * minutes) == max(needs[-minutes - 1 :])
    assert past.peak == max(needs)


def test_what_was_needed_two_days_ago_is_forgotten() -> None:
    assert remembered(9, *[1] * 50, every=3600.0).peak == 1


def brute_force(ahead: tuple[int, ...], start: int, price: float) -> float:
    """Return what the cheapest of all courses costs."""
    found = []
    for course in itertools.product(WIDTHS, repeat=len(ahead)):
        if all(width >= min(need, WIDTHS[-1]) for width, need in zip(course, ahead, strict=True)):
            changes = sum(a != b for a, b in itertools.pairwise((start, *course)))
            found.append(sum(course) + changes * price)
    return min(found)


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=5).map(tuple),
    st.sampled_from(WIDTHS),
    st.floats(0, 8),
)
def test_the_cheapest_course_is_found(ahead: tuple[int, ...], start: int, price: float) -> None:
    found = dict(zip(WIDTHS, cheapest(ahead, WIDTHS, price, 1.0), strict=True))
    assert abs(found[start] - brute_force(ahead, start, price)) < 1e-9


def wanted(present: int, least: int, *ahead: int, price: float = 3.0, crowded: bool = False) -> int:
    """Return the choice with a forecast of hours."""
    return choose(
        Situation(present, crowded, least, least, WIDTHS, price, UNKNOWN, ahead, step_hours=1.0)
    ).width


def test_a_short_dip_is_sat_out_and_a_long_one_is_not() -> None:
    assert wanted(4, 1, 1, 4, 4) == 4
    assert wanted(4, 1, 1, 1, 1, 1, 4) == 1


def test_growing_goes_where_the_day_leads() -> None:
    assert wanted(1, 2, 2, 4, 4, 4, crowded=True) == 4
    assert wanted(1, 2, 2, 2, 2, 2, crowded=True) == 2


def test_the_load_has_its_say_whatever_the_forecast_says() -> None:
    assert wanted(1, 4, 1, 1, 1, 1, crowded=True) == 4
    assert wanted(4, 4, 1, 1, 1, 1) == 4


def test_what_is_wanted_is_kept() -> None:
    """One step: at the width that is chosen nothing else is chosen."""
    for present, least, ahead in itertools.product(
        WIDTHS, WIDTHS, itertools.product(WIDTHS, repeat=3)
    ):
        width = wanted(present, least, *ahead, crowded=present < least)
        assert wanted(width, least, *ahead) == width


def test_the_wider_the_gap_the_shorter_the_wait() -> None:
    assert wait_seconds(12, 6, 6.0) == 3600
    assert wait_seconds(12, 10, 6.0) == 3 * 3600


def test_who_knows_the_day_chooses_a_fuller_channel() -> None:
    """But none that is crowded at once."""
    target, shards = Target(0.8, 0.25, 8), Shards(8, 0.0)
    assert [target.close, target.full] == [pytest.approx(0.875), pytest.approx(0.95)]
    calm, busy = (fit(partial(truediv, work), shards, target) for work in (1.7, 1.8))
    assert [(found.least, found.needed) for found in (calm, busy)] == [(2, 3), (3, 3)]
