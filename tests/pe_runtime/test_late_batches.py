"""Batches of joint queries that are run for a savepoint."""

from pathlib import Path

from streamgraft_pe_runtime.late_batches import note, noted


def test_they_are_known_however_often_a_savepoint_is_begun(tmp_path: Path) -> None:
    """Once a batch has run nothing else tells of it."""
    place = tmp_path / "work"
    note(place, "u", [])
    assert not place.exists()
    note(place, "u", [1])
    note(place, "u", [0, 1])  # another channel's
    assert noted(place, "u", [1, 2]) == [1]
    assert noted(place, "u", range(3)) == [0, 1]
    assert noted(place, "another", range(3)) == []
