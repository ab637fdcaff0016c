"""When in an interval a shard is triggered."""

import pytest

from streamgraft_pe_runtime.staggering import ALONE, Stagger


def test_turns_are_spread_over_the_interval() -> None:
    """Each has a place of its own; a query that is alone has the beginning for itself."""
    assert [Stagger(number, 4).share for number in range(4)] == [0.125, 0.375, 0.625, 0.875]
    assert ALONE.share == 0.0


@pytest.mark.parametrize(
    ("now", "wait"),
    [(10.0, 0.2), (10.125, 0.075), (10.2, 0.0), (10.21, 0.0), (10.25, 0.575), (10.625, 0.2)],
)
def test_a_move_begins_behind_the_last_turn_and_well_before_the_next(
    now: float, wait: float
) -> None:
    """Eight shards in five seconds: triggers 0.625 s apart."""
    first = Stagger(0, 8).share * 5.0
    assert Stagger(3, 8).seconds_to_lull(first + now, 5.0) == pytest.approx(wait)


@pytest.mark.parametrize("stagger", [ALONE, Stagger(3, 16)])
def test_no_wait_where_there_is_no_other_or_no_lull(stagger: Stagger) -> None:
    """Alone, or among so many that there is always one that ends its batch."""
    for tenth in range(50):
        assert stagger.seconds_to_lull(tenth / 10, 5.0) == 0.0


def test_a_wait_leads_to_a_lull() -> None:
    """Behind it there is no other."""
    stagger = Stagger(1, 4)
    for hundredth in range(500):
        now = hundredth / 100
        if wait := stagger.seconds_to_lull(now, 5.0):
            assert stagger.seconds_to_lull(now + wait + 1e-6, 5.0) == 0.0
