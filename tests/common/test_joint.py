"""Which stages run one query over all shards of a channel."""

import pytest

from streamgraft_common.adl import Operator
from streamgraft_common.joint import apart
from streamgraft_common.pe_metadata import PeMetadata

OPERATORS = [
    Operator(name="plain", kind="function"),
    Operator(name="halves", kind="split"),
    Operator(name="counted", kind="function", stateful=True),
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


def test_stateless_stages_are_joint() -> None:
    assert apart(stage("plain", "halves"), OPERATORS) is None


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        (stage("plain", "counted"), "state in counted"),
        (stage("plain", "show"), "a function of its own in show"),
        (stage("plain", real_time=True), "real-time mode"),
        (stage("plain", shard_count=1), "it has one shard"),
        (stage("plain", region=None), "it has one shard"),
    ],
)
def test_others_have_a_query_per_shard(metadata: PeMetadata, why: str) -> None:
    assert apart(metadata, OPERATORS) == why
