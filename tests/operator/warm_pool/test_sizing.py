"""How large a warm pool is that finds its own size."""

from streamgraft_common.resources import WidthChange
from streamgraft_common.timestamps import to_rfc3339
from streamgraft_operator.warm_pool.sizing import LATELY_SECONDS, Growth, drivers, usual_driver

NOW = 1_700_000_000.0
GIB = 2**30


def change(old: int, new: int, ago: float, *, failure: str | None = None) -> WidthChange:
    """Return a change that was asked for some seconds ago and served five seconds later."""
    return WidthChange(
        from_width=old,
        to_width=new,
        epoch=1,
        requested_at=to_rfc3339(NOW - ago),
        serving_at=to_rfc3339(NOW - ago + 5),
        failure=failure,
    )


def grown(kinds: list[str], *changes: WidthChange) -> Growth:
    """Return a region of an older job, whose channels take such drivers."""
    return Growth(1, 8, kinds, changes, NOW - 2 * LATELY_SECONDS)


def size(
    *changes: WidthChange,
    width: int = 1,
    most: int = 8,
    stages: int = 1,
    expected: int = 0,
    age: float = 2 * LATELY_SECONDS,
) -> int:
    """Return the size of the pool of a job with one region and a budget for many pods."""
    regions = [Growth(width, most, ["a"] * stages, changes, NOW - age, expected)]
    return drivers(regions, "a", NOW, GIB // 2, 100 * GIB)


def test_one_channel_waits_where_nothing_has_happened() -> None:
    assert size() == 1
    assert size(stages=3) == 3


def test_all_that_a_new_region_may_grow_waits_until_it_has_grown() -> None:
    assert size(age=60) == 7
    assert size(age=60, width=6, stages=2) == 4
    assert size(change(4, 1, 40), age=60) == 7
    assert size(change(1, 6, 700, failure="not ready in time"), age=3600) == 7
    assert size(change(1, 3, 700), age=3600, width=3) == 2
    assert size(age=LATELY_SECONDS + 1) == 1


def test_the_first_growth_of_a_new_region_is_not_its_whole_wave() -> None:
    """What a step of the load shows at first lets it grow by one channel, and a minute later by
    more."""
    assert size(change(1, 2, 8), width=2, age=3600) == 6
    assert size(change(1, 2, 590), width=2, age=3600) == 6
    assert size(change(1, 2, 610), width=2, age=3600) == 1
    going_on = [change(1, 2, 900), change(2, 4, 500)]
    assert size(*going_on, width=4, age=3600) == 4
    under_way = change(1, 2, 900).model_copy(update={"serving_at": None})
    assert size(under_way, age=3600) == 7


def test_a_later_wave_of_a_new_region_is_as_large_as_those_before() -> None:
    assert size(change(1, 2, 5000), change(2, 3, 8), width=3, age=7200) == 1


def test_the_largest_step_of_the_last_day_counts() -> None:
    steps = [change(1, 2, 9000), change(2, 5, 6000), change(5, 1, 3000)]
    assert size(*steps) == 3
    assert size(change(1, 5, LATELY_SECONDS + 1), *steps) == 3
    assert size(change(1, 5, LATELY_SECONDS - 1), *steps) == 4


def test_what_the_policy_expects_counts_if_it_is_more() -> None:
    assert size(change(1, 3, 600), width=2, expected=6) == 4
    assert size(change(1, 6, 600), width=2, expected=3) == 5
    assert size(change(1, 3, 600), width=2, expected=20) == 6


def test_a_divided_change_is_one_step() -> None:
    assert size(change(1, 2, 600), change(2, 4, 590)) == 3
    assert size(change(1, 2, 600), change(2, 4, 500)) == 2


def test_what_was_rolled_back_is_no_step() -> None:
    assert size(change(1, 6, 600, failure="not ready in time")) == 1


def test_no_more_than_the_region_may_still_grow() -> None:
    assert size(change(1, 4, 600), width=6) == 2
    assert size(change(1, 4, 600), width=8) == 0


def test_only_what_can_take_the_driver_counts() -> None:
    """A channel of two kinds of PEs, and one whose own settings let it take none from a pool."""
    regions = [grown(["a", "b"], change(1, 3, 600)), grown(["", "b"])]
    assert usual_driver(regions) == "b"
    assert drivers(regions, "b", NOW, GIB // 2, 100 * GIB) == 3
    assert drivers(regions, "a", NOW, GIB // 2, 100 * GIB) == 2
    assert usual_driver([grown([""])]) is None


def test_the_memory_of_all_is_limited() -> None:
    regions = [grown(["a"], change(1, 5, 600)), grown(["a"])]
    assert drivers(regions, "a", NOW, GIB // 2, 100 * GIB) == 5
    assert drivers(regions, "a", NOW, GIB // 2, 2 * GIB) == 4
    assert drivers(regions, "a", NOW, 3 * GIB, 2 * GIB) == 0
