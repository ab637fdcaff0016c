"""Batches of a query over several shards that their next owner can't end."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamgraft_pe_runtime import query_logs
from streamgraft_pe_runtime.joint_checkpoints import JointCheckpoints
from streamgraft_pe_runtime.joint_query import QueryFailed
from streamgraft_pe_runtime.protocol.failures import explained
from streamgraft_pe_runtime.spark_log import Position
from streamgraft_pe_runtime.spark_work import SparkStage

ENDED = "org.apache.spark.sql.streaming.StreamingQueryException: Query terminated with exception: "


def stage(folder: Path, failure: str) -> SparkStage:
    """Return a stage whose queries fail."""
    storage: Any = SimpleNamespace(folder=folder, checkpoint=lambda shard: folder / str(shard))
    query = SimpleNamespace(failure=lambda: ENDED + failure, stop=lambda seconds: True)
    driver: Any = SimpleNamespace(
        state_provider=None,
        joint=False,
        obstacle="",
        start=lambda shards, checkpoint, names, joint: query,
    )
    progress: Any = None
    metadata: Any = SimpleNamespace(shard_count=2)
    return SparkStage(driver, storage, progress, metadata)


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (
            "STREAMGRAFT_NOT_ALIGNED: it has a watermark\n\tat org.apache.spark",
            "shards [0, 1] was cut off, and since the last edit the plan may mix their rows"
            " (it has a watermark): undo the edit",
        ),
        ("out of order", "out of order"),
    ],
)
def test_what_a_plan_that_mixes_shards_cannot_end_says_how_to_go_on(
    tmp_path: Path, failure: str, said: str
) -> None:
    """An edit has given the operator a watermark, or another function that may mix rows."""
    before = JointCheckpoints(tmp_path, lambda checkpoint, shards: None)
    checkpoint = before.take_over([0, 1], lambda topic, shard: 0)
    query_logs.write(checkpoint, 0, Position(({"in": {"0": 1, "1": 1}},), {"conf": {}}))
    (checkpoint / "offsets" / "1").write_text((checkpoint / "offsets" / "0").read_text())
    for _ in range(2):
        with pytest.raises(QueryFailed) as caught:
            stage(tmp_path, failure)._checkpoints.take_alone(0)
        assert said in explained(str(caught.value)).message
    assert query_logs.is_cut_off(checkpoint)
