"""The trigger interval by what batches take, the number of queries, their lag and the CPU left."""

import random
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgraft_common.triggers import LONGEST
from streamgraft_pe_runtime.fixed_cost import FixedCost
from streamgraft_pe_runtime.pacing import SHORTEST, Pace, Work, fill_a_batch
from streamgraft_pe_runtime.pressure import cpu_pressure, parse


@dataclass(frozen=True)
class Case:
    """A PE whose batches took so many seconds each."""

    trigger: float = 1.0
    batches: tuple[float, ...] = ()
    queries: int = 1
    slots: int = 1
    shards: int = 1
    stateful: bool = False
    behind: bool = False
    pressure: float = 0.0
    now: float = 0.0

    @property
    def interval(self) -> float:
        """What the queries' interval becomes."""
        pace = Pace(self.trigger)
        for seconds in self.batches:
            pace.took(seconds, 100, seconds)
        work = Work(
            self.queries, self.slots, self.shards, self.stateful, self.behind, self.pressure
        )
        return pace.interval(self.now, work)


CASES = st.builds(
    Case,
    trigger=st.floats(0.05, 60),
    batches=st.lists(st.floats(0, 100), max_size=5).map(tuple),
    queries=st.integers(1, 64),
    slots=st.integers(1, 8),
    shards=st.integers(1, 64),
    stateful=st.booleans(),
    behind=st.booleans(),
    pressure=st.floats(0, 1),
    now=st.floats(0, 240),
)


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (Case(), 0.2),
        (Case(stateful=True), 0.4),
        (Case(stateful=True, shards=8), 0.54),
        (Case(batches=(0.15,) * 5), 0.3),
        (Case(batches=(0.01,)), SHORTEST),
        (Case(batches=(2.0,)), 1.0),
        (Case(batches=(2.0,), trigger=10.0), 4.0),
        (Case(trigger=0.05), 0.05),
    ],
)
def test_half_of_a_cores_time_goes_to_batches(case: Case, expected: float) -> None:
    """Until one has run, it is assumed what it takes; the user's trigger is the longest."""
    assert case.interval == pytest.approx(expected)


def test_the_newest_batches_count_most() -> None:
    """The first of a driver is slow, and says little of the later ones."""
    assert Case(batches=(3.0, *[0.1] * 30), trigger=10.0).interval == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize(
    ("pressure", "expected"), [(0.2, 0.4), (0.5, 0.8), (0.7, 4.0), (0.75, 10.0), (1.0, 10.0)]
)
def test_batches_leave_the_cpu_to_others_where_it_is_short(
    pressure: float, expected: float
) -> None:
    """Down to the user's trigger, which is what has to be."""
    case = Case(batches=(0.2,), trigger=10.0, pressure=pressure)
    assert case.interval == pytest.approx(expected)


def test_small_differences_change_nothing() -> None:
    """Or the interval would be set anew each second; the user's trigger is always reached."""
    assert Case(batches=(0.21,), now=0.4).interval == 0.4
    assert Case(batches=(0.25,), now=0.4).interval == 0.5
    assert Case(batches=(0.55,), now=0.95).interval == 1.0


@pytest.mark.parametrize(
    ("trigger", "shards", "slots", "stateful", "expected"),
    [
        (1.0, 8, 1, False, 1.6),
        (1.0, 16, 2, False, 1.6),
        (1.0, 4, 1, True, 1.6),
        (0.5, 32, 1, True, 2.0),
    ],
)
def test_many_queries_are_triggered_less_often(
    trigger: float, shards: int, slots: int, stateful: bool, expected: float
) -> None:
    """Only as far as their fixed costs need it; more slots and less state need less."""
    case = Case(trigger, (9.0,), queries=shards, slots=slots, stateful=stateful)
    assert case.interval == pytest.approx(expected)


@given(CASES)
def test_the_users_trigger_bounds_the_interval(case: Case) -> None:
    """One query never has a longer one, many at most four times it."""
    longest = case.trigger * (LONGEST if case.queries > 1 else 1.0)
    assert min(SHORTEST, case.trigger) <= case.interval <= longest


@given(CASES)
def test_behind_a_backlog_batches_follow_each_other(case: Case) -> None:
    """Whatever they take, and where CPU is short as well: each of them is full."""
    assert replace(case, behind=True).interval == min(SHORTEST, case.trigger)


def test_a_query_is_behind_from_half_a_batch_on() -> None:
    """And its batches follow each other as soon as each of them is full."""
    pace = Pace(1.0)
    assert [pace.is_behind(lag, 100) for lag in (0, 49, 50)] == [False, False, True]
    assert [fill_a_batch(lag, 100) for lag in (50, 99, 100)] == [False, False, True]


def test_where_records_are_dear_a_query_is_behind_with_few_of_them() -> None:
    """10 ms each, and 0.1 s for any batch: two intervals' work is 200 records."""
    pace = Pace(1.0)
    for number in range(40):
        records = 20 + number % 5
        pace.took(0.1 + 0.01 * records, records, 0.1 + 0.01 * records)
    assert [pace.is_behind(lag, 20_000) for lag in (20, 190, 210)] == [False, False, True]


def test_a_burst_of_cheap_records_leaves_nobody_behind() -> None:
    """What small batches take is not what their records take."""
    pace = Pace(1.0)
    for number in range(40):
        pace.took(0.1001, 1 + number % 3, 0.1001)
    assert not pace.is_behind(1000, 20_000)


def test_batches_that_are_alike_say_nothing_of_their_records() -> None:
    """One at a time, each in a batch of 0.25 s: how many could share one is not known."""
    pace = Pace(1.0)
    for _ in range(40):
        pace.took(0.3, 1, 0.25)
    assert [pace.is_behind(lag, 20_000) for lag in (9, 9_999, 10_000)] == [False, False, True]


def test_the_kernel_says_whether_cpu_is_short() -> None:
    text = "some avg10=61.36 avg60=67.80 avg300=39.52 total=173\nfull avg10=0.00 total=0\n"
    assert parse(text) == pytest.approx(0.6136)
    with pytest.raises(ValueError, match="some"):
        parse("")
    known = any(Path(file).exists() for file in ("/proc/pressure/cpu",))
    assert 0.0 <= cpu_pressure() <= (1.0 if known else 0.0)


@pytest.mark.parametrize(("fixed", "record"), [(0.1, 0.0), (0.05, 0.0005), (0.02, 0.002)])
def test_the_fixed_share_of_batches_is_found_and_not_exceeded(fixed: float, record: float) -> None:
    """From batches of about a hundred records that differ as those of a steady load do."""
    chance, cost = random.Random(7), FixedCost()
    for _ in range(600):
        records = round(chance.gauss(100, 15))
        cost.add(records, fixed + record * records + chance.gauss(0, 0.15 * fixed))
    share = fixed / (fixed + 100 * record)
    assert share - 0.25 <= cost.share <= share


@pytest.mark.parametrize("records", [[100] * 50, [90, 110] * 3])
def test_without_a_difference_nothing_is_taken_for_fixed(records: list[int]) -> None:
    cost = FixedCost()
    for number in records:
        cost.add(number, 0.1)
    assert cost.share == 0.0


def test_more_batches_are_no_load() -> None:
    """Busy time is what the work would take with the user's trigger, where that is known."""
    pace, chance = Pace(1.0), random.Random(7)
    for _ in range(600):
        records = round(chance.gauss(100, 15))
        pace.took(0.1, records, 0.05 + 0.0005 * records)
    assert pace.needed(0.5) == 0.5
    assert pace.interval(0.0, Work(1, 1, 1, stateful=False)) == pytest.approx(0.2)
    assert pace.needed(0.5) == pytest.approx(0.5 * (1 - 0.5 * 0.8), abs=0.01)
    assert pace.interval(0.0, Work(1, 1, 1, stateful=False, behind=True)) == SHORTEST
    assert pace.needed(0.5) == 0.5
