"""Batches of joint queries that are run for a savepoint."""

from pathlib import Path

from streamgraft_pe_runtime.late_batches import note


def test_they_are_known_however_often_a_savepoint_is_begun(tmp_path: Path) -> None:
    """Once a batch has run nothing else tells of it."""
    place = tmp_path / "work"
    assert note(place, "u", []) == []
    assert not place.exists()
    assert note(place, "u", [1]) == [1]
    assert note(place, "u", []) == [1]
    assert note(place, "u", [0]) == [0, 1]
    assert note(place, "another", []) == []
