"""The trigger interval by the number of shards and their lag."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgraft_pe_runtime.pacing import LONGEST, interval_seconds, is_behind


@pytest.mark.parametrize(
    ("trigger", "shards", "slots", "stateful", "expected"),
    [
        (1.0, 1, 1, False, 1.0),
        (1.0, 8, 1, False, 1.6),
        (1.0, 16, 2, False, 1.6),
        (1.0, 4, 1, True, 1.6),
        (2.0, 2, 1, True, 2.0),
        (0.5, 32, 1, True, 2.0),
    ],
)
def test_many_shards_are_triggered_less_often(
    trigger: float, shards: int, slots: int, stateful: bool, expected: float
) -> None:
    """Only as far as their fixed costs need it; more slots and less state need less."""
    found = interval_seconds(trigger, queries=shards, slots=slots, stateful=stateful, behind=False)
    assert found == pytest.approx(expected)


def test_shards_with_state_in_one_query_cost_little_each() -> None:
    found = [
        interval_seconds(1.0, queries=1, slots=1, stateful=stateful, behind=False, shards=shards)
        for stateful, shards in ((True, 8), (True, 64), (False, 64))
    ]
    assert found == pytest.approx([1.0, 1.66, 1.0])


@given(st.floats(0.1, 60), st.integers(1, 64), st.integers(1, 8), st.booleans(), st.booleans())
def test_the_users_trigger_bounds_the_interval(
    trigger: float, shards: int, slots: int, stateful: bool, behind: bool
) -> None:
    """Never shorter, at most four times as long, and exactly it behind a backlog."""
    found = interval_seconds(trigger, queries=shards, slots=slots, stateful=stateful, behind=behind)
    assert trigger <= found <= LONGEST * trigger
    assert not behind or found == trigger


def test_a_shard_is_behind_from_half_a_batch_on() -> None:
    """Then batches are large, and the fixed cost of each matters little."""
    assert [is_behind(lag, 100) for lag in (0, 49, 50)] == [False, False, True]
