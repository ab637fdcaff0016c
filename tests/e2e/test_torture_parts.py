"""The torture run's own judgement: it must find what is wrong, or its verdict says nothing."""

from collections import Counter
from itertools import pairwise

import pytest
from tests.e2e.torture.schedule import KILLS_EVERY, VICTIMS, steps
from tests.e2e.torture.verification import Input, Result, complete, verify

INPUTS = [Input("a", 0), Input("b", 1), Input("a", 2), Input("a", 3), Input("b", 4)]
RESULTS = [Result("a", 1, 0), Result("b", 1, 1), Result("a", 3, 5), Result("b", 2, 5)]


def test_good_run() -> None:
    verdict = verify(5, INPUTS, RESULTS)
    assert (verdict.problems, verdict.loose_twice) == ([], 0)
    assert complete(5, INPUTS, RESULTS)


def test_what_is_written_twice_is_allowed_where_at_least_once_was_asked_for() -> None:
    verdict = verify(5, INPUTS, RESULTS, [*RESULTS, RESULTS[-1]])
    assert (verdict.problems, verdict.loose_twice) == ([], 1)


@pytest.mark.parametrize(
    ("sent", "results"),
    [
        (6, RESULTS),
        (5, RESULTS[:-1]),
        (5, [*RESULTS, Result("a", 2, 2)]),
        (5, [*RESULTS, RESULTS[-1]]),
        (5, [*RESULTS, Result("b", 3, 6)]),
        (5, [Result("a", 1, 2), *RESULTS[1:]]),
        (5, [*RESULTS, Result("c", 1, 1)]),
    ],
    ids=[
        "lost",
        "not counted",
        "step back",
        "written twice",
        "counted twice",
        "another order",
        "from nowhere",
    ],
)
def test_what_is_wrong_is_found(sent: int, results: list[Result]) -> None:
    assert verify(sent, INPUTS, results).problems


def test_incomplete_as_long_as_something_is_missing() -> None:
    assert not complete(6, INPUTS, RESULTS)
    assert not complete(5, INPUTS, RESULTS[:-1])


def test_steps_are_those_of_the_seed() -> None:
    run = list(steps(7, 40, 3))
    assert run == list(steps(7, 40, 3))
    assert run != list(steps(8, 40, 3))
    widths = [1, *(step.width for step in run)]
    assert all(old != new for old, new in pairwise(widths))
    assert set(widths) == {1, 2, 3}
    assert not run[-1].hurried


@pytest.mark.parametrize("seed", range(20))
def test_each_kind_is_killed_once_in_a_block(seed: int) -> None:
    run = list(steps(seed, 2 * KILLS_EVERY, 3))
    for first in (0, KILLS_EVERY):
        block = run[first : first + KILLS_EVERY]
        killed = Counter(step.kill.victim for step in block if step.kill)
        assert killed == dict.fromkeys(VICTIMS, 1)
