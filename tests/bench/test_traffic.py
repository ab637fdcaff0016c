"""The arithmetic of the benchmarks: what it says of losses, duplicates, order and gaps."""

import pytest

from bench.partitioner import key_group, murmur2
from bench.report import percentile
from bench.traffic import Arrival, Arrivals, keys_by_group


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_is_kafkas(data: bytes, expected: int) -> None:
    """The values are those of the test of Kafka's own Java client (UtilsTest)."""
    assert murmur2(data) == expected & 0xFFFFFFFF


def test_keys_by_group() -> None:
    """Every group gets its keys, and the keys belong to it."""
    keys = keys_by_group(4, 3)
    assert [len(group) for group in keys.values()] == [3, 3, 3, 3]
    assert all(key_group(key.encode(), 4) == group for group in keys for key in keys[group])


def arrivals(*items: tuple[float, int, str]) -> Arrivals:
    """Return arrivals from (time, id, key)."""
    return Arrivals([Arrival(*item) for item in items])


def test_lost_and_duplicated() -> None:
    """Ids that never came, and ids that came again."""
    seen = arrivals((0, 0, "a"), (1, 2, "a"), (2, 2, "a"))
    assert seen.lost(4) == 2
    assert seen.duplicated() == 1


def test_order_is_per_key() -> None:
    """A smaller id after a larger one counts only within a key."""
    assert arrivals((0, 1, "a"), (1, 0, "b")).out_of_order() == 0
    assert arrivals((0, 1, "a"), (1, 0, "a")).out_of_order() == 1


def test_longest_gap_counts_the_edges() -> None:
    """Silence at the beginning and at the end of the window is a gap, too."""
    seen = arrivals((3.0, 0, "a"), (4.0, 1, "a"), (4.5, 2, "b"))
    assert seen.longest_gap(["a"], 0.0, 10.0) == 6.0
    assert seen.longest_gap(["a"], 1.0, 4.2) == 2.0
    assert seen.longest_gap(["c"], 0.0, 10.0) == 10.0


def test_percentile_is_the_nearest_rank() -> None:
    """The 95th percentile of 1…100 is 95, of one value that value."""
    assert percentile([float(number) for number in range(1, 101)], 0.95) == 95
    assert percentile([7.0], 0.95) == 7.0
    assert percentile([1.0, 2.0, 3.0], 0.5) == 2.0
