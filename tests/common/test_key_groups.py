"""Where the keys of a key group come from, and by what columns they are told apart."""

from itertools import product

import pytest

from streamgraft_common.key_groups import heirs, key_columns, origins, readings
from streamgraft_common.resources import SavedState

NUMBERS = (1, 2, 3, 4, 6, 8)


@pytest.mark.parametrize(("old", "new"), list(product(NUMBERS, NUMBERS)))
def test_each_key_is_found_in_just_one_origin_of_its_new_group(old: int, new: int) -> None:
    for key in range(old * new):
        assert origins(old, new, key % new).count(key % old) == 1
    assert all(group in origins(old, new, heir) for heir, group in _inverse(old, new))
    read = [group for wanted in range(new) for group in origins(old, new, wanted)]
    assert {read.count(group) for group in range(old)} == {readings(old, new)}


def _inverse(old: int, new: int) -> list[tuple[int, int]]:
    return [(heir, group) for group, heir in heirs(old, new).items()]


def test_a_multiple_of_groups_reads_one_old_group_each() -> None:
    assert [origins(4, 8, group) for group in (0, 3, 4, 7)] == [[0], [3], [0], [3]]
    assert origins(2, 3, 2) == [0, 1]
    assert readings(4, 4) == 1


@pytest.mark.parametrize(
    ("operator", "kept_by", "key", "expected"),
    [
        ("stateStoreSave", ["key", "window"], ["key"], ["key"]),
        ("dedupe", ["b", "a"], ["a", "b"], ["a", "b"]),
        ("stateStoreSave", ["word"], ["key"], None),
        ("stateStoreSave", ["key"], [], None),
        ("symmetricHashJoin", ["field0", "index"], ["key"], ["field0"]),
        ("symmetricHashJoin", ["field0", "field1"], ["key"], None),
        ("transformWithStateExec", [], ["key"], None),
    ],
)
def test_state_is_partitioned_by_the_columns_of_the_key(
    operator: str, kept_by: list[str], key: list[str], expected: list[str] | None
) -> None:
    assert key_columns(SavedState(operator=operator, key=kept_by), key) == expected
