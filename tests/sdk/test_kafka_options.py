"""Options of Kafka sources and sinks, and our own settings of Spark: what is refused."""

from contextlib import nullcontext

import pytest
from pyspark.sql import DataFrame

import streamgraft as sg
from streamgraft._checks import check

SCHEMA = "carrier string, delay double"


def passed(rows: DataFrame) -> DataFrame:
    """Take all rows."""
    return rows


def refusal(app: sg.Application) -> sg.ApplicationError:
    """Return the one thing that is wrong."""
    (error,) = check(app.graph)
    assert type(error) is sg.InvalidArgument
    assert error.location
    assert error.location.file == __file__
    return error


@pytest.mark.parametrize("option", ["minPartitions", "maxrecordsperpartition"])
def test_options_that_divide_a_partition_are_refused(option: str) -> None:
    """Several tasks would read it, at one time."""
    app = sg.Application("flights")
    app.kafka_source("flights", topic="flights", schema=SCHEMA, options={option: "8"})
    error = refusal(app)
    assert error.problem == (
        f"source 'flights' has the option {option}: several tasks would read parts of one"
        " partition, and records of a key lose their order"
    )


@pytest.mark.parametrize(
    ("option", "value", "remedy"),
    [
        ("kafka.bootstrap.servers", "other:9092", "use bootstrap_servers="),
        ("subscribe", "other", "use topic="),
        ("subscribePattern", "f.*", "use topic="),
        ("assign", '{"flights": [0]}', "use topic="),
        ("startingOffsets", "latest", "use starting_offsets="),
        ("endingTimestamp", "1", "a stream has no end"),
        ("includeHeaders", "false", 'format="raw"'),
        ("maxOffsetsPerTrigger", "20k", "use a whole number"),
        ("kafka.auto.offset.reset", "latest", "use starting_offsets="),
        ("kafka.enable.auto.commit", "true", "in the checkpoint"),
        ("kafka.interceptor.classes", "Seen", "takes no interceptors"),
        ("kafka.key.deserializer", "Text", 'format="raw"'),
        ("kafka.value.deserializer", "Text", 'format="raw"'),
    ],
)
def test_options_of_a_source_that_say_otherwise_what_arguments_say_are_refused(
    option: str, value: str, remedy: str
) -> None:
    """They would win in the driver, and whoever reads the application would not know; or Spark
    refuses them there."""
    for written in (option, option.lower()):
        app = sg.Application("flights")
        app.kafka_source("flights", topic="flights", schema=SCHEMA, options={written: value})
        error = refusal(app)
        assert written in error.problem
        assert remedy in error.remedy


@pytest.mark.parametrize(
    ("option", "remedy"),
    [
        ("kafka.bootstrap.servers", "use bootstrap_servers="),
        ("topic", "use topic="),
        ("kafka.transactional.id", "leave it out"),
        ("includeHeaders", "as kafka.NAME"),
        ("kafka.key.serializer", "leave it out"),
        ("kafka.value.serializer", "leave it out"),
    ],
)
def test_options_of_a_sink_that_say_otherwise_what_arguments_say_are_refused(
    option: str, remedy: str
) -> None:
    app = sg.Application("flights")
    flights = app.kafka_source("flights", topic="flights", schema=SCHEMA)
    app.kafka_sink("out", input=flights, topic="out", options={option: "other"})
    assert remedy in refusal(app).remedy


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("acks", "1"),
        ("acks", "0"),
        ("retries", "0"),
        ("enable.idempotence", "false"),
        ("max.in.flight.requests.per.connection", "6"),
    ],
)
def test_what_transactions_rule_out_is_refused(name: str, value: str) -> None:
    """Kafka's producer would not start, and no batch would ever be written."""
    for delivery in ("exactly_once", "at_least_once"):
        app = sg.Application("flights")
        flights = app.kafka_source("flights", topic="flights", schema=SCHEMA)
        app.kafka_sink(
            "out",
            input=flights,
            topic="out",
            delivery=delivery,
            options={f"kafka.{name}": value},
        )
        if delivery == "exactly_once":
            assert f"kafka.{name}={value!r}" in refusal(app).problem
            assert "delivery='at_least_once'" in refusal(app).remedy
        else:
            assert check(app.graph) == []


@pytest.mark.parametrize("option", ["maxOffsetsPerTrigger", "minOffsetsPerTrigger"])
def test_real_time_takes_no_options_of_batches(option: str) -> None:
    """Spark refuses them in the pod; a region's source is in a PE of its own, in batches."""
    for fast, region in ((True, False), (False, False), (True, True)):
        app = sg.Application("flights")
        flights = app.kafka_source("flights", topic="flights", schema=SCHEMA, options={option: "9"})
        with app.parallel("region", key="carrier", max_width=2) if region else nullcontext():
            app.operator(inputs=flights, real_time=fast)(passed)
        if fast and not region:
            assert refusal(app).problem.startswith(
                f"source 'flights' has the option {option}, and 'passed' reads it in real time"
            )
        else:
            assert check(app.graph) == []


def test_other_options_are_the_applications_own() -> None:
    app = sg.Application("flights")
    may_lose = {"failOnDataLoss": "false", "maxOffsetsPerTrigger": "5", "startingTimestamp": "1"}
    flights = app.kafka_source("flights", topic="flights", schema=SCHEMA, options=may_lose)
    harmless = {"kafka.acks": "all", "kafka.retries": "9", "kafka.compression.type": "zstd"}
    app.kafka_sink("out", input=flights, topic="out", options=harmless)
    assert check(app.graph) == []


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("maxOffsetPerTrigger", "20", "has maxOffsetsPerTrigger only"),
        ("slots", "4", "there is no such setting"),
        ("maxOffsetsPerTrigger", "20k", "use a whole number above 0"),
        ("maxOffsetsPerTrigger", "0", "use a whole number above 0"),
    ],
)
def test_settings_of_ours_are_known_and_numbers(name: str, value: str, remedy: str) -> None:
    """Others would be dropped silently, or found wrong in the pods."""
    app = sg.Application("flights", spark_conf={f"spark.streamgraft.{name}": value})
    app.kafka_source("flights", topic="flights", schema=SCHEMA)
    assert remedy in refusal(app).remedy
