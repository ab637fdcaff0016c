"""What the operator says of shards whose queries fail."""

from streamgraft_common.resources import ProcessingElementStatus, RuntimeStatus, ShardStatus
from streamgraft_common.resources.base import Condition
from streamgraft_operator.pe.controller import failing_shards

FAILED = ShardStatus(state="Failed", epoch=1, message="/c: damaged", reason="CheckpointDamaged")
RUNNING = ShardStatus(state="Running", epoch=1)
NOTHING = ProcessingElementStatus()


def test_a_shard_that_fails_is_a_condition() -> None:
    """Its reason is that of the first shard; the message says what to do."""
    (state,) = failing_shards(NOTHING, RuntimeStatus(shards={"10": FAILED, "2": RUNNING}))
    assert (state.type, state.status, state.reason) == (
        "ShardsRunning",
        "False",
        "CheckpointDamaged",
    )
    assert state.message == "shard 10 fails and is tried again: /c: damaged"


def test_it_is_taken_back_when_none_fails() -> None:
    before = Condition(type="ShardsRunning", status="False", reason="CheckpointDamaged")
    known = ProcessingElementStatus(conditions=[before])
    (state,) = failing_shards(known, RuntimeStatus(shards={"2": RUNNING}))
    assert (state.status, state.message) == ("True", "")


def test_nothing_is_said_of_what_never_failed_or_has_no_pod() -> None:
    assert failing_shards(NOTHING, RuntimeStatus(shards={"2": RUNNING})) == ()
    assert failing_shards(NOTHING, None) == ()
