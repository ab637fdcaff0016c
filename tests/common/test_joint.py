"""Which stages run one query over all shards of a channel."""

import pytest

from streamgraft_common.adl import Operator
from streamgraft_common.joint import apart
from streamgraft_common.pe_metadata import HDFS, ROCKSDB, PeMetadata
from streamgraft_common.pe_metadata import STATE_STORE_PROVIDER as PROVIDER

OPERATORS = [
    Operator(name="plain", kind="function"),
    Operator(name="halves", kind="split"),
    Operator(name="counted", kind="function", stateful=True, joint_state=True),
    Operator(name="summed", kind="function", stateful=True, joint_state=True),
    Operator(name="windows", kind="function", stateful=True),
    Operator(name="marked", kind="function", event_time=True),
    Operator(name="show", kind="sink"),
]


def stage(*operators: str, **fields: object) -> PeMetadata:
    """Return a stage of a region with eight key groups."""
    return PeMetadata.model_validate(
        {
            "namespace": "n",
            "job": "j",
            "pe_id": 1,
            "stage_name": "r",
            "region": "r",
            "shard_count": 8,
            "operators": list(operators),
            "inputs": [],
            "outputs": [],
            "checkpoint_path": "p",
            "trigger_seconds": 1.0,
            "bundle_digest": "",
            **fields,
        }
    )


@pytest.mark.parametrize(
    "operators", [("plain", "halves"), ("plain", "counted"), ("counted", "summed")]
)
def test_joint_stages(operators: tuple[str, ...]) -> None:
    assert apart(stage(*operators), OPERATORS) is None


def test_usual_settings_are_no_obstacle() -> None:
    metadata = stage("counted", spark_conf={PROVIDER: HDFS, "spark.sql.shuffle.partitions": "1"})
    assert apart(metadata, OPERATORS) is None
    assert apart(stage("counted", spark_conf={PROVIDER: ROCKSDB}), OPERATORS) is None
    metadata = stage("plain", spark_conf={PROVIDER: "other"})
    assert apart(metadata, OPERATORS) is None


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        (stage("plain", "marked"), "a watermark in marked"),
        (
            stage("plain", "counted", "windows"),
            "state in windows that goes by time, or is of two streams",
        ),
        (
            stage("counted", spark_conf={"spark.sql.shuffle.partitions": "4"}),
            "state with spark.sql.shuffle.partitions=4",
        ),
        (stage("counted", spark_conf={PROVIDER: "other"}), f"state with {PROVIDER}=other"),
        (stage("plain", "show"), "a function of its own in show"),
        (stage("plain", real_time=True), "real-time mode"),
        (stage("plain", shard_count=1), "it has one shard"),
        (stage("plain", region=None), "it has one shard"),
    ],
)
def test_others_have_a_query_per_shard(metadata: PeMetadata, why: str) -> None:
    assert apart(metadata, OPERATORS) == why
