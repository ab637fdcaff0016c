"""What a restore tells before it begins."""

from streamgraft.cli._restore import announced, notes
from streamgraft_common.resources import SavepointStatus
from streamgraft_common.restore import Redistribution


def test_a_restore_estimates_bytes_and_seconds() -> None:
    work = Redistribution("work", "work", 4, 8, 50_000_000, 100_000_000)
    one, two = announced(work, 1), announced(work, 2)
    assert "the state of 4 key groups (50,000,000 bytes) is dealt out to 8" in one
    assert "100,000,000 bytes are read for it by 1 channels, which takes about 7 s" in one
    assert "by 2 channels, which takes about 4 s" in two


def test_a_restore_says_what_is_done_twice_before_anything_stops() -> None:
    """No savepoint of a job that this version takes has such shards; one that exists may."""
    assert notes(SavepointStatus(), [], {}) == []
    (note,) = notes(SavepointStatus(unclean_shards=2), [], {})
    assert note.startswith("In 2 of the shards a pod died within a batch")
    assert "twice" in note
