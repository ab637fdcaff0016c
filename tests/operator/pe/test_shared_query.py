"""What the operator says of PEs that run more queries than were planned."""

from streamgraft_common.resources import ProcessingElementStatus, RuntimeStatus
from streamgraft_common.resources.base import Condition
from streamgraft_operator.pe.controller import shared_query

NOTHING = ProcessingElementStatus()
BEFORE = ProcessingElementStatus(
    conditions=[Condition(type="QueryShared", status="False", reason="PlanNotUnderstood")]
)


def test_a_query_per_shard_that_was_not_planned_is_a_condition() -> None:
    (state,) = shared_query(NOTHING, RuntimeStatus(ready=True, apart="it has a watermark"))
    assert (state.type, state.status, state.reason) == (
        "QueryShared",
        "False",
        "PlanNotUnderstood",
    )
    assert "one for all of a channel's was planned: it has a watermark." in state.message
    assert "An edit that does without that has one again" in state.message


def test_it_is_taken_back_by_a_plan_and_not_by_a_pod_without_one() -> None:
    assert shared_query(BEFORE, RuntimeStatus()) == ()
    (state,) = shared_query(BEFORE, RuntimeStatus(ready=True))
    assert (state.status, state.message) == ("True", "")


def test_nothing_is_said_of_what_is_as_planned_or_has_no_pod() -> None:
    assert shared_query(NOTHING, RuntimeStatus(ready=True)) == ()
    assert shared_query(NOTHING, None) == ()
