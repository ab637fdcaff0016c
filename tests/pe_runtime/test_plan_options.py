"""What an input port reads, and the settings of a driver."""

import json

import pytest

from streamgraft_common.adl import KafkaEndpoint, Operator
from streamgraft_common.pe_metadata import InputPort, PeMetadata
from streamgraft_pe_runtime.conf import spark_conf
from streamgraft_pe_runtime.plan import kafka_options, tasks
from streamgraft_pe_runtime.reports import ended_at, gaps, late_rows, owned_partitions

PORT = InputPort(
    port=0, stream="s", topic="t", partitions=4, bootstrap_servers="b:9092", operator="o"
)
METADATA = PeMetadata(
    namespace="n",
    job="j",
    pe_id=3,
    stage_name="pe-3",
    operators=["o"],
    inputs=[PORT],
    outputs=[],
    checkpoint_path="p",
    trigger_seconds=1.0,
    slots=2,
    spark_conf={"spark.sql.shuffle.partitions": "4", "spark.streamgraft.maxOffsetsPerTrigger": "9"},
    bundle_digest="",
)


@pytest.mark.parametrize(
    ("region", "partitions", "option", "value"),
    [
        (None, 4, "assign", {"t": [0, 1, 2, 3]}),
        ("r", 4, "assign", {"t": [2]}),
        (None, None, "subscribe", "t"),
    ],
)
def test_partitions(region: str | None, partitions: int | None, option: str, value: object) -> None:
    """Inside a region the shard's own, outside all, of outside topics whatever there is."""
    port = PORT.model_copy(update={"partitions": partitions})
    options = kafka_options(port, METADATA.model_copy(update={"region": region}), None, (2,))
    found = options[option]
    assert (json.loads(found) if option == "assign" else found) == value
    owned = owned_partitions(port, region is not None, 2, [0, 1])
    assert owned == {"assign": value["t"] if isinstance(value, dict) else []}.get(option, [0, 1])


@pytest.mark.parametrize(
    ("region", "partitions", "slots", "expected"),
    [("r", 4, 2, 1), (None, 4, 2, 2), (None, 1, 2, 1), (None, None, 3, 3)],
)
def test_tasks(region: str | None, partitions: int | None, slots: int, expected: int) -> None:
    """As many as can run at once, and no more than there are partitions."""
    metadata = METADATA.model_copy(update={"region": region, "slots": slots})
    assert tasks(PORT.model_copy(update={"partitions": partitions}), metadata) == expected


def test_endpoint_options_win() -> None:
    """The engine is never hidden: an application's own options of its source come last."""
    endpoint = KafkaEndpoint(
        topic="t", starting_offsets="latest", options={"maxOffsetsPerTrigger": "5"}
    )
    operator = Operator(name="o", kind="kafka-source", kafka=endpoint)
    outside = PORT.model_copy(update={"external": True})
    options = kafka_options(outside, METADATA, operator, (0,))
    assert (options["startingOffsets"], options["maxOffsetsPerTrigger"]) == ("latest", "5")
    inside = kafka_options(PORT, METADATA, operator, (0,))
    assert (inside["startingOffsets"], inside["maxOffsetsPerTrigger"]) == ("earliest", "9")
    assert "failOnDataLoss" not in inside
    leaky = kafka_options(PORT.model_copy(update={"may_lose": True}), METADATA, operator, (0,))
    assert leaky == {**inside, "failOnDataLoss": "false"}


@pytest.mark.parametrize(("real_time", "expected"), [(False, "0"), (True, None)])
def test_batches_do_not_wait_for_further_records(real_time: bool, expected: str | None) -> None:
    """A batch knows what it reads; only in real-time mode is a record awaited."""
    metadata = METADATA.model_copy(update={"real_time": real_time})
    options = kafka_options(PORT, metadata, None, (0,))
    assert options.get("kafka.fetch.max.wait.ms") == expected


def test_settings_of_the_application_win() -> None:
    """Ours are not Spark's and stay out of it."""
    conf = spark_conf("flights-0-1", METADATA.slots, METADATA.spark_conf)
    assert conf["spark.master"] == "local[2]"
    assert conf["spark.sql.shuffle.partitions"] == "4"
    assert "spark.streamgraft.maxOffsetsPerTrigger" not in conf


def test_extensions_of_the_application_come_beside_our_own() -> None:
    """Without our rule shards of one query would mix."""
    conf = spark_conf("flights-0-1", 1, {"spark.sql.extensions": "their.Extensions"})
    ours = spark_conf("flights-0-1", 1, {})["spark.sql.extensions"]
    assert conf["spark.sql.extensions"] == f"{ours},their.Extensions"


def test_rows_behind_the_watermark_are_counted() -> None:
    """Of all operators; Spark says -1 where it does not know."""
    operators = [{"numRowsDroppedByWatermark": 2}, {"numRowsDroppedByWatermark": -1}, {}]
    assert late_rows({"stateOperators": operators}) == 2


def test_end_of_a_batch() -> None:
    """Its trigger's start and duration."""
    report = {"timestamp": "2026-11-21T05:09:59.953Z", "durationMs": {"triggerExecution": 4757}}
    assert ended_at(report) == "2026-11-21T05:10:04.710Z"


@pytest.mark.parametrize(
    ("begin", "end", "rows", "expected"),
    [
        ({"t": {"0": 5, "1": 7}}, {"t": {"0": 15, "1": 9}}, 8, 4),
        ({"t": {"0": 5}}, {"t": {"0": 15}}, 10, 0),
        ({"t": {"0": 5}}, {"t": {"0": 15}}, 20, 0),  # it is read twice
        ({"t": {"0": 5}}, {"t": {"0": 15}}, 0, 0),  # a batch that was written before is left out
        (None, {"t": {"0": 15}}, 10, 0),  # it is not known where the first one began
        ({"t": {"0": 5}}, {"t": {"0": 15, "1": 10}}, 8, 2),
        (3, 4, 1, 0),  # no offsets of Kafka
    ],
)
def test_gaps_are_offsets_without_a_row(
    begin: object, end: object, rows: int, expected: int
) -> None:
    report = {"sources": [{"startOffset": begin, "endOffset": end}], "numInputRows": rows}
    assert gaps(report) == expected
