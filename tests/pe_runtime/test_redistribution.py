"""Logs of a checkpoint that is made of several others; its state is another test's."""

import json

import pytest

from streamgraft_common.restore import NotRestorable
from streamgraft_pe_runtime.redistribution import earliest, first_commit, first_offsets

OFFSETS = [
    "v1",
    json.dumps({"batchWatermarkMs": 5, "batchTimestampMs": 9, "conf": {"a": "b"}}),
    '{"ns.job.a": {"3": 77}}',
    "-",
]


def test_the_earliest_watermark_holds_and_groups_without_one_have_no_say() -> None:
    assert earliest([30, 0, 20]) == 20
    assert earliest([0, 0]) == earliest([]) == 0


def test_a_key_group_begins_its_own_partition_of_the_new_topics() -> None:
    version, batch, *positions = first_offsets(OFFSETS, {"ns.job.a": "ns.fork.a"}, 6, 20)
    assert version == "v1"
    assert json.loads(batch) == {
        "batchWatermarkMs": 20,
        "batchTimestampMs": 9,
        "conf": {"a": "b"},
    }
    assert positions == ['{"ns.fork.a": {"6": 0}}', "-"]


def test_the_first_commit_has_the_watermark_too() -> None:
    assert first_commit(["v1", '{"nextBatchWatermarkMs":7}'], 20) == [
        "v1",
        '{"nextBatchWatermarkMs": 20}',
    ]
    with pytest.raises(NotRestorable, match="format v2"):
        first_commit(["v2", "{}"], 20)
