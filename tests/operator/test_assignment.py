"""Balanced, sticky, minimal, deterministic."""

from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgraft_operator.graph import assign


@given(st.data())
def test_balanced_and_minimal_among_all_assignments(data: st.DataObject) -> None:
    shards = data.draw(st.integers(1, 6))
    width = data.draw(st.integers(1, min(shards, 4)))
    current = data.draw(st.dictionaries(st.integers(0, shards - 1), st.integers(0, 5)))

    def moves(candidate: dict[int, int]) -> int:
        return sum(current.get(shard) != channel for shard, channel in candidate.items())

    result = assign(shards, width, current)
    everything = (dict(enumerate(c)) for c in product(range(width), repeat=shards))
    assert balanced(result, shards, width)
    assert moves(result) == min(moves(c) for c in everything if balanced(c, shards, width))


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


@pytest.mark.parametrize("width", [0, 5])
def test_impossible_width(width: int) -> None:
    with pytest.raises(ValueError, match="not within 1 to 4"):
        assign(4, width, {})
