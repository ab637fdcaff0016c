"""How many records a batch may have: what takes as long as the trigger, whatever a record takes."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgraft_pe_runtime.batch_size import FIRST, BatchSize

MOST = 20_000


def backlogged(
    size: BatchSize, fixed: float, record: float, batches: int, noise: float = 0.0
) -> float:
    """Run full batches that take `fixed` seconds and `record` for each; return what the last did
    without noise."""
    chance, took = random.Random(7), 0.0
    for _ in range(batches):
        took = fixed + record * size.limit
        size.took(took * (1 + chance.uniform(-noise, noise)), size.limit)
    return fixed + record * size.limit


@pytest.mark.parametrize(
    ("fixed", "record", "trigger", "expected"),
    [
        (0.15, 0.0066, 1.0, 1.0),  # a service is asked
        (0.15, 1e-3, 0.5, 0.5),
        (0.05, 0.05, 1.0, 1.0),
        (0.15, 20e-6, 1.0, 0.15 + MOST * 20e-6),  # as many as the application allows
        (0.15, 0.02, 10.0, 10.0),
    ],
)
def test_a_batch_takes_as_long_as_the_trigger(
    fixed: float, record: float, trigger: float, expected: float
) -> None:
    """Within a few batches, and with some noise on each of them."""
    size = BatchSize(trigger, MOST)
    assert size.limit == FIRST
    assert backlogged(size, fixed, record, 8) == pytest.approx(expected, rel=0.25)
    assert backlogged(size, fixed, record, 20, noise=0.2) == pytest.approx(expected, rel=0.4)


def test_a_record_that_takes_longer_than_the_trigger_has_a_batch_of_its_own() -> None:
    """After some that were too large: nothing was known."""
    size = BatchSize(1.0, MOST)
    backlogged(size, 0.1, 5.0, 8)
    assert size.limit == 1


def test_a_short_trigger_does_not_fill_the_time_with_fixed_costs() -> None:
    """A full batch takes up to four times what one costs without records."""
    size, chance = BatchSize(0.1, MOST), random.Random(7)
    for _ in range(200):  # a steady load, by which the fixed costs become known
        records = round(chance.gauss(100, 15))
        size.took(0.2 + 1e-3 * records, records)
    assert backlogged(size, 0.2, 1e-3, 20) == pytest.approx(0.8, rel=0.25)


def test_little_to_do_says_nothing_against_large_batches() -> None:
    """Only a batch that took too long does, and one by itself no more than halves the limit."""
    size = BatchSize(1.0, MOST)
    backlogged(size, 0.15, 20e-6, 8)
    for _ in range(50):
        size.took(0.15, 3)
    size.took(0.2, 0)
    assert size.limit == MOST
    size.took(30.0, 3)
    assert size.limit == MOST // 2


@given(
    st.floats(0.01, 60),
    st.integers(1, 100_000),
    st.lists(st.tuples(st.floats(0, 1000), st.integers(0, 10**6)), max_size=40),
)
def test_the_application_limits_batches(
    trigger: float, most: int, batches: list[tuple[float, int]]
) -> None:
    """And each has a record at least."""
    size = BatchSize(trigger, most)
    for seconds, records in batches:
        size.took(seconds, records)
        assert 1 <= size.limit <= most
