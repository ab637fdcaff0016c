"""Cuts that functions ask for, as a PE tells them."""

from types import SimpleNamespace
from typing import Any

from streamgraft_common.resources import RuntimeStatus
from streamgraft_pe_runtime.metrics import PeMetrics
from streamgraft_pe_runtime.protocol.cut_requests import CutRequests
from streamgraft_pe_runtime.protocol.processing_element import Pod, ProcessingElement


def test_a_pod_that_is_a_pe_s_again_asks_anew() -> None:
    """By way of the warm pool. What it asked for before has been done."""
    client: Any = SimpleNamespace()
    element = ProcessingElement(client, Pod("ns", "p", "uid"), PeMetrics(1))
    asked = set[str]()
    for _ in range(2):
        element._cut_requests.add("all")
        element._stream_changes.add(None, "out", "subscription", "n")
        asked |= set(element._cut_requests.all(None).values())
        asked |= {change.id for change in element._stream_changes.all(None)}
        assert element._let_go()
    assert len(asked) == 2


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
