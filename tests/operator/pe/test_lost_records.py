"""What the operator says of records that were lost."""

from streamgraft_common.resources import LostRecords, ProcessingElementStatus, RuntimeStatus
from streamgraft_operator.pe.controller import lost_records


def test_losses_are_a_condition() -> None:
    lost = LostRecords(topics={"b": 3, "a": 5}, last_at="2026-01-01T00:00:00Z")
    (state,) = lost_records(ProcessingElementStatus(runtime=RuntimeStatus(lost=lost)))
    assert (state.type, state.status, state.reason) == ("RecordsLost", "True", "Retention")
    assert "5 of a, 3 of b; noticed last at 2026-01-01T00:00:00Z" in state.message


def test_without_losses_there_is_none() -> None:
    for runtime in (None, RuntimeStatus(), RuntimeStatus(lost=LostRecords())):
        assert lost_records(ProcessingElementStatus(runtime=runtime)) == ()
