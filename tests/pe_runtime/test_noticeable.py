"""What of loads is written into a PE's status."""

from streamgraft_pe_runtime.protocol.noticeable import Noticeable
from streamgraft_pe_runtime.protocol.work import Load


def test_loads_are_written_when_they_have_changed_enough() -> None:
    noticeable = Noticeable()
    assert noticeable.look({1: Load(0.52, 7)}, behind=False)
    assert not noticeable.look({1: Load(0.49, 9)}, behind=False)
    assert noticeable.look({1: Load(0.49, 0)}, behind=False)
    assert noticeable.look({1: Load(0.6, 0)}, behind=False)


def test_being_behind_is_said_at_once_and_taken_back_later() -> None:
    """A queue about as long as half a batch would be written at each look otherwise."""
    noticeable = Noticeable()
    noticeable.look({}, behind=False)
    looks = [True, False, True, False, False, False]
    written = [(noticeable.look({}, behind=now), noticeable.behind) for now in looks]
    assert written == [
        (True, True),
        (False, True),
        (False, True),
        (False, True),
        (True, False),
        (False, False),
    ]
