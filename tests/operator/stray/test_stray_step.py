"""What is said of objects with which nothing is done."""

import pytest

from streamgraft_common.resources.base import Condition
from streamgraft_operator.stray.step import states, to_say


@pytest.mark.parametrize(
    ("exists", "labelled", "reason"),
    [
        (True, True, "JobFound"),
        (False, True, "JobMissing"),
        (False, False, "JobMissing"),
        (True, False, "NotOfItsJob"),
    ],
)
def test_whose_it_is(exists: bool, labelled: bool, reason: str) -> None:
    found, _ = states("ParallelRegion", "j", exists=exists, labelled=labelled, obstacle="")
    assert found.reason == reason
    assert (found.status == "True") == (reason == "JobFound")


def test_what_cannot_be_read_is_named() -> None:
    why = "autoscaling.periods.0.timeZone: 'America' is no time zone"
    _, accepted = states("ParallelRegion", "j", exists=True, labelled=True, obstacle=why)
    assert (accepted.status, accepted.reason) == ("False", "Unreadable")
    assert why in accepted.message


def test_nothing_is_said_of_what_is_and_was_in_order() -> None:
    right = states("ProcessingElement", "j", exists=True, labelled=True, obstacle="")
    assert to_say(right, []) == []
    before = Condition(type="JobFound", status="False", reason="JobMissing")
    assert [state.type for state in to_say(right, [before])] == ["JobFound"]
