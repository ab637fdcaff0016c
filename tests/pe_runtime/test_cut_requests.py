"""Cuts that functions ask for, as a PE tells them."""

from streamgraft_common.resources import RuntimeStatus
from streamgraft_pe_runtime.protocol.cut_requests import CutRequests


def test_each_call_is_a_request_of_its_own_and_the_next_launch_goes_on_telling() -> None:
    """The operator may not have seen what the last launch asked for."""
    before = CutRequests("one")
    assert before.all(None) == {}
    before.add("all")
    before.add("all")
    known = RuntimeStatus(cut_requests=before.all(None))
    assert known.cut_requests == {"all": "one.2"}
    after = CutRequests("two")
    assert after.all(known) == {"all": "one.2"}
    after.add("all")
    after.add("rest")
    assert after.all(known) == {"all": "two.1", "rest": "two.2"}
