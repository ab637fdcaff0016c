"""When a width change pays: against brute force, and as stories."""

import itertools
import math
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
        memory.observe(1000.0 + index * every, width, 1.0)
    return memory.past(1000.0 + (len(needs) - 1) * every)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=40), st.integers(0, 45))
def test_the_largest_need_of_any_time_is_known(needs: list[int], minutes: int) -> None:
    past = remembered(*needs)
    if minutes > len(needs) - 1:
        assert past.most_within(60.0 * minutes) is None
    else:
        assert past.most_within(60.0 * minutes) == max(needs[-minutes - 1 :])
    assert past.peak == max(needs)


def test_what_nobody_saw_is_not_known() -> None:
    """The largest need of a time with a gap in it may have been in the gap."""
    memory = Needs()
    for at in (0.0, 60.0, 3600.0, 3660.0):
        memory.observe(at, 5 if at == 0 else 2, 1.0)
    past = memory.past(3660.0)
    assert past.most_within(60.0) == 2
    assert past.most_within(600.0) is None
    assert past.peak == 5


@pytest.mark.parametrize(("until", "known"), [(9_960.0, True), (9_000.0, False)])
def test_what_another_one_saw_counts_if_it_joins_without_a_gap(until: float, known: bool) -> None:
    own = Needs()
    own.observe(10_000.0, 2, 1.0)
    own.adopt(1_000.0, {7: 2_000.0, 3: until})
    past = own.past(10_060.0)
    assert past.most_within(3_600.0) == (3 if known else None)
    assert past.peak == 7
    later = Needs()
    later.adopt(1_000.0, {7: 2_000.0, 3: until})
    later.observe(10_000.0, 2, 1.0)
    assert later.past(10_060.0).known_seconds == past.known_seconds


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


def test_what_a_forecast_errs_by_is_kept_free() -> None:
    """But never more than the headroom that there is without one."""
    target, shards = Target(0.8, 0.25, 8), Shards(8, 0.0)
    found = [target.planned(error) for error in (0.0, 0.1, 9.0)]
    assert found == [target.full, pytest.approx(0.95 / 1.05), target.roomy]
    least = [fit(partial(truediv, 1.8), shards, target, error).least for error in (0.0, 0.2, 9.0)]
    assert least == [2, 3, 3]


def grown(needed: int, growth: float, peak: int, price: float = 3.0) -> int:
    """Return the choice of a crowded channel, least is needed."""
    past = Past(86_400.0, ((86_000.0, peak),), growth)
    widths = tuple(range(1, 30))
    return choose(Situation(1, True, needed, needed, widths, price, past)).width


def test_while_the_load_grows_a_change_brings_what_is_soon_to_be_needed() -> None:
    """4 channels an hour, and a price of 2 channel-hours: sqrt(2 x 2 x 4) = 4 channels more."""
    assert grown(4, 0.0, 20, price=2.0) == 4
    assert grown(4, 1.0, 20, price=2.0) == 8
    assert grown(4, 1.0, 20, price=0.0) == 4


def test_no_more_is_brought_than_the_last_day_has_needed() -> None:
    assert grown(4, 1.0, 6, price=2.0) == 6
    assert grown(4, 1.0, 2, price=2.0) == 4


@given(st.floats(0.1, 8), st.floats(0.5, 20))
def test_the_advance_is_the_cheapest(growth: float, price: float) -> None:
    """Per hour: half of the advance comes too early, and a change is due each advance / growth."""

    def cost(advance: float) -> float:
        return advance / 2 + price * growth / advance

    best = math.sqrt(2 * price * growth)
    assert cost(best) <= min(cost(best * 1.1), cost(best / 1.1))
    assert abs(grown(1, growth, 999, price) - min(1 + best, 29)) <= 1


def test_a_width_stays_until_it_has_paid_for_its_change() -> None:
    """However little was needed before it was taken."""
    past = Past(86_400.0, ((86_400.0, 1),))
    seconds = wait_seconds(4, 1, 3.0)
    for steady, width in ((seconds - 1, 4), (seconds, 1)):
        situation = Situation(4, False, 1, 1, WIDTHS, 3.0, past, steady_seconds=steady)
        assert choose(situation).width == width
