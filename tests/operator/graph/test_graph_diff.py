"""What a change of a PE takes."""

from typing import Any

import pytest

from streamgraft_common.pe_metadata import BundlePlace, InputPort, OutputPort, OwnTopic, PeMetadata
from streamgraft_operator.graph import (
    Change,
    Content,
    changed_fields,
    classify,
    content_of,
    diff,
)
from streamgraft_operator.graph.diff import graph_content, in_place

INPUT = InputPort(
    port=0, stream="raw", topic="raw", partitions=4, bootstrap_servers="kafka:9092", operator="sum"
)
OUTPUT = OutputPort(
    port=0, stream="sum", topic="sum", partitions=4, bootstrap_servers="kafka:9092", operator="sum"
)
PE = PeMetadata(
    namespace="ns",
    job="flights",
    pe_id=4,
    stage_name="delays",
    region="delays",
    channel=2,
    shard_count=4,
    operators=["sum"],
    inputs=[INPUT],
    outputs=[OUTPUT],
    checkpoint_path="ns/flights-u1/delays",
    parameters={"least": "15"},
    trigger_seconds=1.0,
    spark_conf={"spark.sql.shuffle.partitions": "1"},
    bundle_digest="d",
)
TO_ANOTHER = OUTPUT.model_copy(update={"port": 1, "topic": "sum.other", "stream": "sum"})


def content(pe: PeMetadata, settings_id: str = "s") -> Content:
    return content_of(pe, settings_id)


@pytest.mark.parametrize(
    ("update", "change"),
    [
        ({}, Change.IDENTICAL),
        ({"inputs": [INPUT.model_copy(update={"port": 3})]}, Change.METADATA_ONLY),
        ({"inputs": [INPUT.model_copy(update={"operator": "first"})]}, Change.METADATA_ONLY),
        (
            {"rehearsal": OwnTopic(topic="rehearsal", bootstrap_servers="kafka:9092")},
            Change.METADATA_ONLY,
        ),
        ({"outputs": [OUTPUT, TO_ANOTHER]}, Change.IN_PLACE),
        ({"operators": ["clean", "sum"]}, Change.IN_PLACE),
        ({"parameters": {"least": "30"}}, Change.IN_PLACE),
        ({"trigger_seconds": 0.5}, Change.IN_PLACE),
        (
            {"spark_conf": {**PE.spark_conf, "spark.streamgraft.maxOffsetsPerTrigger": "9"}},
            Change.IN_PLACE,
        ),
        ({"spark_conf": {"spark.sql.shuffle.partitions": "2"}}, Change.RESTART),
        ({"slots": 2}, Change.RESTART),
        ({"code": "d"}, Change.IN_PLACE),
        ({"checkpoint_path": "ns/flights-u2/delays"}, Change.RESTART),
        ({"trigger_seconds": 0.5, "slots": 2}, Change.RESTART),
    ],
)
def test_class_of_a_change(update: dict[str, Any], change: Change) -> None:
    new = PE.model_copy(update=update)
    assert classify(content(PE), content(new)) is change
    fields = changed_fields(PE, new)
    assert fields.keys() == update.keys()
    assert (change in fields.values()) == bool(update)


def test_a_bundle_with_the_same_code_is_no_change() -> None:
    moved = BundlePlace(config_map="other", key="bundle.zip")
    new = PE.model_copy(update={"bundle_digest": "e", "bundle": moved})
    assert classify(content(PE), content(new)) is Change.IDENTICAL
    assert content(PE).pool("d" * 64) != content(new).pool("e" * 64)


def test_code_that_a_process_can_not_load_restarts() -> None:
    fixed = PE.model_copy(update={"code_in_place": False})
    assert classify(content(fixed), content(fixed.model_copy(update={"code": "d"}))) is (
        Change.RESTART
    )


def test_other_settings_of_pods_restart() -> None:
    assert classify(content(PE), content(PE, "t")) is Change.RESTART
    assert content(PE).driver != content(PE, "t").driver


def test_channels_share_the_driver_but_not_the_place() -> None:
    other = PE.model_copy(update={"pe_id": 5, "channel": 3})
    one, two = content(PE), content(other)
    assert (one.driver, one.plan) == (two.driver, two.plan)
    assert one.place != two.place


def test_content_survives_an_annotation() -> None:
    assert Content.parse(str(content(PE))) == content(PE)


@pytest.mark.parametrize("text", ["", "0123", "a.b"])
def test_what_others_wrote_into_the_annotation_is_a_restart(text: str) -> None:
    assert classify(Content.parse(text), content(PE)) is Change.RESTART


def test_diff_names_every_pe_of_either_graph() -> None:
    same, new = (
        content(PE),
        content(PE.model_copy(update={"slots": 2})),
    )
    assert diff({1: same, 2: same, 4: same}, {4: new, 2: same, 3: same}) == {
        1: Change.REMOVED,
        2: Change.IDENTICAL,
        3: Change.ADDED,
        4: Change.RESTART,
    }


AS_RELEASED = Content.parse(
    "be772aac640df476.eef5c6ddc43c3b1e.44136fa355b3678a.b70e74a5ab9ddd83.33e9bb4b49e5d373"
)
"""Content of PE. Where it becomes another, an upgrade plans or starts all PEs of all jobs anew."""


class Newer(PeMetadata):
    """What a later release may know."""

    added: int = 3


def test_a_field_that_a_release_adds_changes_no_pe() -> None:
    newer = Newer(**PE.model_dump())
    assert newer.to_wire() == PE.to_wire()
    assert content(newer) == content(PE)
    assert content(newer) == AS_RELEASED
    assert content(newer.model_copy(update={"added": 4})) != AS_RELEASED


def test_a_pod_of_before_passes_over_fields_that_it_does_not_know() -> None:
    newer = Newer(**PE.model_dump()).model_copy(update={"added": 4})
    assert PeMetadata.model_validate_json(newer.to_wire()) == PE


@pytest.mark.parametrize("shards", [1, 4])
def test_a_channel_has_the_content_of_another_but_for_its_place(shards: int) -> None:
    first = PE.model_copy(update={"shard_count": shards})
    second = first.model_copy(update={"pe_id": 5, "channel": 3})
    assert in_place(graph_content(first), second) == graph_content(second)
