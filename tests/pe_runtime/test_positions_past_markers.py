"""When a PE looks whether there are records behind its position, and what it takes from that."""

from streamgraft_pe_runtime.markers import Markers

KEY = ("t", 0)


def test_it_looks_once_when_nothing_moves() -> None:
    markers = Markers()
    assert not markers.wants_look(KEY, 5, 7)
    assert not markers.wants_look(KEY, 5, 8)
    assert markers.wants_look(KEY, 5, 8)
    markers.looked(KEY, 5, 8, records=True)
    assert not markers.wants_look(KEY, 5, 8)
    assert markers.past(KEY, 5) == 5


def test_nothing_to_look_for_at_the_end_and_before_the_first_position() -> None:
    markers = Markers()
    for position, end in ((7, 7), (-1, 7)):
        markers.wants_look(KEY, position, end)
        assert not markers.wants_look(KEY, position, end)


def test_offsets_without_records_are_passed_from_that_position_only() -> None:
    markers = Markers()
    markers.wants_look(KEY, 5, 8)
    markers.looked(KEY, 5, 8, records=False)
    assert [markers.past(KEY, position) for position in (4, 5, 6, 9)] == [4, 8, 6, 9]
    assert markers.past(("t", 1), 5) == 5
    assert not markers.wants_look(KEY, 5, 8)
    markers.wants_look(KEY, 5, 9)
    assert markers.wants_look(KEY, 5, 9)
    assert markers.past(KEY, 5) == 8
