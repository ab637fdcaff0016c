"""Balanced, sticky, minimal, deterministic."""

from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgraft_operator.graph import assign
from streamgraft_operator.graph.assignment import concerned


@given(st.data())
def test_balanced_and_minimal_among_all_assignments(data: st.DataObject) -> None:
    shards = data.draw(st.integers(1, 6))
    width = data.draw(st.integers(1, min(shards, 4)))
    current = data.draw(st.dictionaries(st.integers(0, shards - 1), st.integers(0, 5)))

    result = assign(shards, width, current)
    everything = (dict(enumerate(c)) for c in product(range(width), repeat=shards))
    assert balanced(result, shards, width)
    assert moves(current, result) == min(
        moves(current, c) for c in everything if balanced(c, shards, width)
    )


def moves(before: dict[int, int], after: dict[int, int]) -> int:
    return sum(before.get(shard) != channel for shard, channel in after.items())


def balanced(assignment: dict[int, int], shards: int, width: int) -> bool:
    loads = Counter(assignment.values())
    each = [loads[channel] for channel in range(width)]
    return sum(each) == len(assignment) == shards and max(each) - min(each) <= 1


@given(st.integers(1, 64), st.lists(st.integers(1, 64), min_size=2, max_size=6))
def test_only_new_channels_gain_and_only_old_ones_lose(shards: int, widths: list[int]) -> None:
    old = assign(shards, min(widths[0], shards), {})
    for wanted in widths[1:]:
        width, before = min(wanted, shards), max(old.values()) + 1
        new = assign(shards, width, old)
        for shard in old:
            if new[shard] != old[shard]:
                assert new[shard] >= before if width > before else old[shard] >= width
        old = new


def test_without_channels_no_shard_has_one() -> None:
    assert assign(4, 0, {0: 0, 1: 1}) == {}


@pytest.mark.parametrize("width", [-1, 5])
def test_impossible_width(width: int) -> None:
    with pytest.raises(ValueError, match="not within 0 to 4"):
        assign(4, width, {})


@given(st.data())
def test_loads_change_neither_the_numbers_nor_what_has_to_move(data: st.DataObject) -> None:
    shards = data.draw(st.integers(1, 12))
    width = data.draw(st.integers(1, min(shards, 5)))
    current = data.draw(st.dictionaries(st.integers(0, shards - 1), st.integers(0, 6)))
    loads = data.draw(st.dictionaries(st.integers(0, shards - 1), st.floats(0, 1)))

    plain, loaded = assign(shards, width, current), assign(shards, width, current, loads)
    assert balanced(loaded, shards, width)
    assert moves(current, loaded) == moves(current, plain)


def test_hot_shards_are_spread() -> None:
    loads = {0: 0.8, 1: 0.7, 2: 0.1, 3: 0.1, 4: 0.1, 5: 0.1}
    wide = assign(6, 3, dict.fromkeys(range(6), 0), loads)
    assert wide[0] != wide[1]
    assert max(Counter(wide.values()).values()) == 2
    per_channel = [sum(loads[s] for s, ch in wide.items() if ch == c) for c in range(3)]
    assert max(per_channel) <= 0.9
    narrow = assign(6, 2, wide, loads)
    assert narrow[0] != narrow[1]


@pytest.mark.parametrize(
    ("before", "after", "shards"),
    [
        ("0011", "0011", ""),
        ("0000", "0011", "0123"),
        ("0122", "0123", "23"),
        ("001", "000", "012"),
        ("0011", "2011", "01"),
    ],
)
def test_all_shards_of_a_channel_that_gives_or_takes_some_are_concerned(
    before: str, after: str, shards: str
) -> None:
    def owners(channels: str) -> dict[int, int]:
        return {shard: int(channel) for shard, channel in enumerate(channels)}

    assert concerned(owners(before), owners(after)) == set(map(int, shards))


def test_who_falls_asleep_or_wakes_up_concerns_all() -> None:
    awake = {0: 0, 1: 1}
    assert concerned({}, awake) == concerned(awake, {}) == {0, 1}
