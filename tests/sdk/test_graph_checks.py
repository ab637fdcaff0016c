"""Every graph error names the line of the user's code, says what is wrong and what to do."""

import inspect
import math
import socket
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pandas
import pytest
from pydantic import ValidationError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

import streamgraft as sg
from streamgraft._adl import consistent_region
from streamgraft._checks import check, notices
from streamgraft_common.adl import Period

SCHEMA = "carrier string, delay double"
LOCK = threading.Lock()


def application() -> tuple[sg.Application, sg.Stream]:
    """Return an application with one source."""
    app = sg.Application("flights")
    return app, app.kafka_source("flights", topic="flights", schema=SCHEMA)


def here() -> int:
    """Return the line of the caller."""
    frame = inspect.currentframe()
    assert frame
    assert frame.f_back
    return frame.f_back.f_lineno


def only_error(app: sg.Application, kind: type[sg.ApplicationError]) -> sg.ApplicationError:
    """Return the single error that the check finds, of exactly this kind."""
    errors = check(app.graph)
    assert [type(error) for error in errors] == [kind], errors
    assert str(errors[0]).startswith(f"{errors[0].location}: ")
    assert errors[0].location
    assert errors[0].location.file == __file__
    return errors[0]


def line(error: sg.ApplicationError) -> int:
    """Return the line that an error points at."""
    assert error.location
    return error.location.line


def test_right_application_has_no_errors() -> None:
    """The language of the documentation passes, and forward references by name are fine."""
    app, flights = application()

    @app.operator(inputs=flights)
    def located(rows: DataFrame) -> DataFrame:
        return rows

    with app.parallel("enrich", key=["carrier"], max_width=4):

        @app.operator(inputs=[located, "weather"])
        def joined(rows: "DataFrame", weather) -> DataFrame:  # type: ignore[no-untyped-def]
            return rows

    @app.source(schema="carrier string, wind double")
    def weather(spark: SparkSession) -> DataFrame:
        return spark.readStream.format("rate").load()

    late, early = app.split("lateness", input=joined, outputs={"late": "true", "early": "false"})
    app.kafka_sink("results", input=late, topic="late", key=["carrier"])

    @app.sink(inputs=early)
    def show(batch: DataFrame, batch_id: int) -> None:
        batch.show()

    assert check(app.graph) == []
    assert notices(app.graph) == []
    assert sorted(app.functions) == ["joined", "located", "show", "weather"]
    assert [operator.name for operator in app.graph.upstream_first()].index("weather") < 3
    assert {operator.name: operator.region for operator in app.graph.operators}["joined"] == (
        "enrich"
    )


def test_several_errors_come_together_in_order_of_lines() -> None:
    """All that is wrong is reported at once."""
    app, flights = application()
    app.kafka_sink("a", input="nowhere", topic="a")
    app.kafka_sink("Bad_Name", input=flights, topic="b")
    errors = check(app.graph)
    assert [type(error) for error in errors] == [sg.UnknownStream, sg.InvalidName]
    assert line(errors[1]) == line(errors[0]) + 1
    with pytest.raises(sg.InvalidApplication) as caught:
        sg._errors.raise_all(errors)
    assert str(caught.value).splitlines() == [str(error) for error in errors]
    assert caught.value.errors == tuple(errors)


@pytest.mark.parametrize("name", ["Late", "9late", "late-", "la.te", "", "x" * 41])
def test_bad_names(name: str) -> None:
    """Names have to suit Kubernetes and Kafka."""
    app, flights = application()
    expected = here() + 1
    app.kafka_sink(name, input=flights, topic="late")
    assert line(only_error(app, sg.InvalidName)) == expected


def test_bad_names_of_application_region_and_split_output() -> None:
    """The rule holds for everything that has a name."""
    app = sg.Application("My App")
    flights = app.kafka_source("flights", topic="flights", schema=SCHEMA)
    with app.parallel("a-region-with-a-long-name", key="carrier", max_width=2):
        app.split("parts", input=flights, outputs={"Late": "true"})
    errors = check(app.graph)
    assert [type(error) for error in errors] == [sg.InvalidName] * 3
    assert "at most 20 characters" in str(errors[1])


def test_duplicate_operator_says_where_the_first_is() -> None:
    """Both places are named."""
    app, flights = application()
    first = here() + 1
    app.kafka_sink("late", input=flights, topic="a")
    app.kafka_sink("late", input=flights, topic="b")
    error = only_error(app, sg.DuplicateName)
    assert line(error) == first + 1
    assert f"test_graph_checks.py:{first}" in error.problem


def test_duplicate_stream() -> None:
    """An output of a split may not have the name of an operator's stream."""
    app, flights = application()
    app.split("parts", input=flights, outputs={"flights": "true"})
    assert "stream 'flights' exists already" in only_error(app, sg.DuplicateName).problem


def test_duplicate_region_and_parameter() -> None:
    """Regions and parameters have names of their own."""
    app, flights = application()
    for _ in range(2):
        app.parameter("url", default="")
        with app.parallel("region", key="carrier", max_width=2):
            app.split(f"parts-{_}", input=flights, outputs={f"late-{_}": "true"})
    kinds = {type(error) for error in check(app.graph)}
    assert kinds == {sg.DuplicateName, sg.InvalidArgument}


def test_unknown_stream_suggests_the_nearest() -> None:
    """A slip of the pen is answered with the right name."""
    app, _ = application()
    app.kafka_sink("late", input="flihgts", topic="late")
    assert only_error(app, sg.UnknownStream).remedy == "did you mean 'flights'?"


def test_cycle_names_the_loop() -> None:
    """The loop is written out, at the line of its first operator."""
    app, _ = application()
    expected = here() + 2

    @app.operator(inputs=["flights", "third"])
    def first(rows: DataFrame, more: DataFrame) -> DataFrame:
        return rows

    @app.operator(inputs=first)
    def second(rows: DataFrame) -> DataFrame:
        return rows

    @app.operator(inputs=second)
    def third(rows: DataFrame) -> DataFrame:
        return rows

    error = only_error(app, sg.CyclicGraph)
    assert line(error) == expected
    assert {"first", "second", "third"} <= set(error.problem.split())


def test_operator_that_reads_itself() -> None:
    """The shortest loop."""
    app, _ = application()
    app.split("parts", input="late", outputs={"late": "true"})
    assert "parts → parts" in only_error(app, sg.CyclicGraph).problem


def test_region_inside_a_region() -> None:
    """Nesting is reported at the inner region."""
    app, flights = application()
    with app.parallel("outer", key="carrier", max_width=2):
        app.split("a", input=flights, outputs={"x": "true"})
        expected = here() + 1
        with app.parallel("inner", key="carrier", max_width=2):
            app.split("b", input=flights, outputs={"y": "true"})
    error = only_error(app, sg.NestedRegion)
    assert line(error) == expected
    assert "'outer'" in error.problem


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"max_width": 0}, "max_width is 0"),
        ({"max_width": 2000}, "max_width is 2000"),
        ({"max_width": 4, "width": 5}, "width is 5"),
        ({"max_width": 4, "width": 0}, "width is 0"),
        ({"max_width": 4, "key": []}, "has no key"),
        ({"max_width": 4, "autoscaling": sg.Autoscaling(max_width=8)}, "autoscaling.max_width"),
        ({"max_width": 4, "autoscaling": sg.Autoscaling(min_width=5)}, "autoscaling.min_width"),
        (
            {"max_width": 4, "autoscaling": sg.Autoscaling(max_cost_per_hour=2)},
            "autoscaling.channel_cost_per_hour is not set",
        ),
        (
            {"max_width": 4, "autoscaling": sg.Autoscaling(channel_cost_per_hour=2)},
            "autoscaling.max_cost_per_hour is not set",
        ),
        (
            {"max_width": 4, "autoscaling": sg.Autoscaling(utilization_weights={"others": 2})},
            "utilization_weights names others",
        ),
        (
            {"max_width": 4, "autoscaling": sg.Autoscaling(utilization_weights={"parts": 0})},
            "0 for every operator",
        ),
        (
            {
                "max_width": 4,
                "autoscaling": sg.Autoscaling(metric="lag-utilization", mode="advise"),
            },
            "metric='lag-utilization' and mode='advise'",
        ),
        (
            {
                "max_width": 4,
                "autoscaling": sg.Autoscaling(
                    metric="lag-utilization",
                    periods=[
                        Period(start="06:00", end="08:00"),
                        Period(start="22:00", end="06:00", min_width=2),
                    ],
                ),
            },
            "metric='lag-utilization' and a period with a min_width",
        ),
    ],
)
def test_region_settings(settings: dict[str, Any], problem: str) -> None:
    """Widths fit each other."""
    app, flights = application()
    with app.parallel("region", **{"key": "carrier", **settings}):
        app.split("parts", input=flights, outputs={"late": "true"})
    assert problem in only_error(app, sg.InvalidArgument).problem


@pytest.mark.parametrize(
    "asked",
    [
        sg.Autoscaling(mode="advise"),
        sg.Autoscaling(periods=[Period(start="22:00", end="06:00", min_width=2)]),
        sg.Autoscaling(metric="lag-utilization", periods=[Period(start="22:00", end="06:00")]),
    ],
)
def test_what_a_metric_heeds_may_be_asked_of_it(asked: sg.Autoscaling) -> None:
    app, flights = application()
    with app.parallel("region", key="carrier", max_width=4, autoscaling=asked):
        app.split("parts", input=flights, outputs={"late": "true"})
    assert check(app.graph) == []


def test_empty_region() -> None:
    """A region without operators is a slip."""
    app, _ = application()
    with app.parallel("region", key="carrier", max_width=2):
        pass
    assert "is empty" in only_error(app, sg.InvalidArgument).problem


def test_a_region_without_with_is_empty() -> None:
    """What is written behind it would run outside of it, and spread nothing."""
    app, flights = application()
    expected = here() + 1
    app.parallel("region", key="carrier", max_width=2)
    app.kafka_sink("late", input=flights, topic="late")
    error = only_error(app, sg.InvalidArgument)
    assert line(error) == expected
    assert error.problem == "region 'region' is empty"
    assert "`with app.parallel(...):`" in error.remedy


def test_source_inside_a_region() -> None:
    """An outside topic is not partitioned by the region's key groups."""
    app = sg.Application("flights")
    with app.parallel("region", key="carrier", max_width=2):
        app.kafka_source("flights", topic="flights", schema=SCHEMA)
    only_error(app, sg.MisplacedSource)


def test_application_without_a_source() -> None:
    """Nothing would flow."""
    expected = here() + 1
    app = sg.Application("flights")
    assert line(only_error(app, sg.MissingSource)) == expected


def test_json_source_needs_a_schema() -> None:
    """And raw has none."""
    app = sg.Application("flights")
    app.kafka_source("flights", topic="flights")
    app.kafka_source("more", topic="flights", format="raw", schema=SCHEMA)
    assert [type(error) for error in check(app.graph)] == [sg.InvalidArgument] * 2


def test_values_of_kafka_endpoints() -> None:
    """What the description's model rejects is reported with the name of the argument."""
    app, flights = application()
    expected = here() + 1
    app.kafka_sink("late", input=flights, topic="late", partitions=0)
    error = only_error(app, sg.InvalidArgument)
    assert line(error) == expected
    assert error.problem == "partitions is 0"


@pytest.mark.parametrize("topic", ["", "my topic", "..", "t" * 250])
def test_topics_have_names_that_kafka_takes(topic: str) -> None:
    """Told at the build, not by a broker."""
    app, flights = application()
    app.kafka_sink("late", input=flights, topic=topic)
    assert "a topic's name has" in only_error(app, sg.InvalidArgument).remedy


def test_output_mode_is_one_that_a_pe_can_have() -> None:
    """Spark's complete mode would write all rows with every batch."""
    app, flights = application()
    expected = here() + 2

    @app.operator(inputs=flights, output_mode="complete")  # type: ignore[arg-type]
    def counted(rows: DataFrame) -> DataFrame:
        return rows

    error = only_error(app, sg.InvalidArgument)
    assert line(error) == expected
    assert str(error).endswith("output_mode is 'complete': use one of append, update")


def test_who_reads_one_stream_is_refused_two() -> None:
    """Of a split the second one's rows were lost."""
    app, flights = application()
    both: Any = [flights, flights]
    app.split("size", input=both, outputs={"large": "delay > 9"})
    app.export(both, name="all")
    assert [error.problem for error in check(app.graph)] == [
        "split 'size' has 2 inputs",
        "sink 'flights-flights-export' has 2 inputs",
    ]


def test_conditions_and_keys_are_texts() -> None:
    app, flights = application()
    outputs: Any = {"large": True}
    app.split("size", input=flights, outputs=outputs)
    for key in (("carrier", 5), 5):
        wrong: Any = key
        with app.parallel(f"by-{len(app.graph.regions)}", key=wrong, max_width=2):
            app.operator(inputs=flights, uid=f"o-{len(app.graph.regions)}")(one_parameter)
    assert [error.problem for error in check(app.graph)] == [
        "the condition of output 'large' is True",
        "a key column of region 'by-0' is 5",
        "a key column of region 'by-1' is 5",
    ]


@pytest.mark.parametrize("seconds", [0, "1", True, math.inf, math.nan])
def test_trigger_has_to_be_positive(seconds: Any) -> None:
    """A trigger of 0 would poll."""
    app = sg.Application("flights", trigger_seconds=seconds)
    app.kafka_source("flights", topic="flights", schema=SCHEMA)
    assert f"trigger_seconds is {seconds!r}" in only_error(app, sg.InvalidArgument).problem


def test_texts_have_to_be_texts() -> None:
    """Settings of Spark and parameters travel as texts."""
    conf: Any = {"spark.sql.shuffle.partitions": 2}
    app = sg.Application("flights", spark_conf=conf)
    app.kafka_source("flights", topic="flights", schema=SCHEMA)
    number: Any = 3
    app.parameter("limit", default=number)
    assert [error.problem for error in check(app.graph)] == [
        "spark_conf['spark.sql.shuffle.partitions'] is 2",
        "the default of 'limit' is 3",
    ]


def test_settings_that_the_runtime_does_not_survive_are_refused() -> None:
    """Its formats of timestamps are none of the parser of Spark 2."""
    conf = {"spark.sql.legacy.timeParserPolicy": "legacy"}
    app = sg.Application("flights", spark_conf=conf)
    app.kafka_source("flights", topic="flights", schema=SCHEMA)
    assert "can't write streams' timestamps" in only_error(app, sg.InvalidArgument).problem


@pytest.mark.parametrize(
    ("setting", "remedy"),
    [
        ("spark.master", "slots"),
        ("spark.driver.memory", "heapMb"),
        ("spark.driver.extraJavaOptions", "javaOptions"),
        ("spark.jars", "into the image"),
        ("spark.jars.packages", "into the image"),
        ("spark.executor.memory", "heapMb"),
        ("spark.executor.instances", "slots"),
    ],
)
def test_settings_that_do_nothing_in_a_pe_are_refused(setting: str, remedy: str) -> None:
    """A PE's driver is not started by spark-submit, and has no executors."""
    app = sg.Application("flights", spark_conf={setting: "4"})
    app.kafka_source("flights", topic="flights", schema=SCHEMA)
    error = only_error(app, sg.InvalidArgument)
    assert error.problem == f"spark_conf[{setting!r}] is '4'"
    assert remedy in error.remedy


def test_settings_of_executors_that_hold_in_a_driver_are_taken() -> None:
    conf = {"spark.executor.heartbeatInterval": "20s", "spark.driver.maxResultSize": "1g"}
    app = sg.Application("flights", spark_conf=conf)
    app.kafka_source("flights", topic="flights", schema=SCHEMA)
    assert check(app.graph) == []


def test_what_is_no_stream_is_refused_at_once() -> None:
    """The traceback ends in the line that passes it."""
    app, _ = application()
    for wrong in (no_parameter, None, [3]):
        inputs: Any = wrong
        with pytest.raises(TypeError, match="name a stream"):
            app.operator(inputs=inputs)
    for width in ("2", True):
        wide: Any = width
        with pytest.raises(TypeError, match="use a whole number"):
            app.parallel("region", key="carrier", max_width=wide)
    settings: Any = {"max_width": 3}
    with pytest.raises(TypeError, match=r"use sg\.Autoscaling"):
        app.parallel("region", key="carrier", max_width=4, autoscaling=settings)
    assert app.graph.regions == []
    conditions: Any = ["late", "early"]
    with pytest.raises(TypeError, match=r"give each stream its condition, as in outputs=\{"):
        app.split("lateness", input="flights", outputs=conditions)


@pytest.mark.parametrize("name", ["source", "operator", "sink"])
def test_a_decorator_without_parentheses_says_how_it_is_written(name: str) -> None:
    app, _ = application()
    with pytest.raises(TypeError, match=rf"write @app\.{name}\(\.\.\.\)"):
        getattr(app, name)(no_parameter)


def test_a_function_without_a_name_needs_a_uid() -> None:
    app, flights = application()
    late = partial(lambda least, rows: rows.where(f"delay > {least}"), 9)
    with pytest.raises(TypeError, match=r"has no name that the operator could have: .*uid="):
        app.operator(inputs=flights)(late)
    stream = app.operator(inputs=flights, uid="late")(late)
    assert stream.name == "late"
    assert check(app.graph) == []


@pytest.mark.parametrize("name", [None, 3, ["flights"]])
def test_a_name_that_is_no_text_is_told_like_any_other(name: Any) -> None:
    app = sg.Application("flights")
    app.kafka_source(name, topic="flights", schema=SCHEMA)
    assert f"operator name {name!r} is not valid" in only_error(app, sg.InvalidName).problem


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"placement": "node-7"}, "placement is 'node-7'"),
        ({"real_time": "fast"}, "real_time is 'fast'"),
        ({"real_time": True, "delivery": "atleastonce"}, "delivery is 'atleastonce'"),
        ({"delivery": "atleastonce"}, "an operator has delivery='atleastonce'"),
        ({"restartable": "no"}, "restartable is 'no'"),
        ({"apart": 1}, "apart is 1"),
    ],
)
def test_values_of_operators_have_their_types(settings: dict[str, Any], problem: str) -> None:
    """Of another type they would be refused behind the analysis, without a line."""
    app, flights = application()
    app.operator(inputs=flights, **settings)(one_parameter)
    assert only_error(app, sg.InvalidArgument).problem.startswith(problem)


def test_a_region_takes_no_text_for_a_placement() -> None:
    app, flights = application()
    wrong: Any = "node-7"
    with app.parallel("region", key="carrier", max_width=2, placement=wrong):
        app.operator(inputs=flights)(one_parameter)
    assert only_error(app, sg.InvalidArgument).problem == "placement is 'node-7'"


@pytest.mark.parametrize("schema", [["user", "text"], T.StringType(), {"user": "string"}])
def test_schemas_are_texts_or_struct_types(schema: Any) -> None:
    app = sg.Application("flights")
    app.kafka_source("flights", topic="flights", schema=schema)
    error = only_error(app, sg.SchemaMismatch)
    assert error.problem == f"the schema of 'flights' is {schema!r}"
    assert "like a table's columns" in error.remedy


def test_a_schema_may_be_a_struct_type() -> None:
    app = sg.Application("flights")
    app.kafka_source("flights", topic="flights", schema=T.StructType().add("carrier", "string"))
    assert check(app.graph) == []


def test_a_largest_width_of_none_is_no_width() -> None:
    """It would be the region's, as if nothing was said."""
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        sg.Autoscaling(max_width=0)


def test_one_key_column_may_be_a_text() -> None:
    """It is not taken for a list of letters."""
    app, flights = application()
    app.kafka_sink("late", input=flights, topic="late", key="carrier")
    kafka = app.graph.operators[-1].kafka
    assert kafka
    assert kafka.key == ["carrier"]


def one_parameter(rows: DataFrame) -> DataFrame:
    """Take one stream."""
    return rows


def no_parameter() -> DataFrame:
    """Take nothing."""
    raise NotImplementedError


def two_parameters(first: DataFrame, second: DataFrame) -> DataFrame:
    """Take two."""
    return first


def wrong_annotation(rows: pandas.DataFrame) -> DataFrame:
    """Take another library's frame."""
    raise NotImplementedError


def wrong_result(rows: DataFrame) -> int:
    """Return a number."""
    return 1


def wrong_text(rows: "list[int]") -> DataFrame:
    """Have an annotation in quotes."""
    raise NotImplementedError


def generator(rows: DataFrame) -> Iterator[DataFrame]:
    """Yield."""
    yield rows


async def coroutine(rows: DataFrame) -> DataFrame:
    """Be asynchronous."""
    return rows


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (no_parameter, "0 parameter(s)"),
        (two_parameters, "2 parameter(s)"),
        (wrong_annotation, "annotated as pandas"),
        (wrong_result, "the result of 'wrong-result' is annotated as int"),
        (wrong_text, "annotated as list[int]"),
        (generator, "not a plain function"),
        (coroutine, "not a plain function"),
    ],
)
def test_signatures(function: Any, problem: str) -> None:
    """Number and annotations of the parameters fit the inputs; the line is the decorator's."""
    app, flights = application()
    expected = here() + 1
    app.operator(inputs=flights)(function)
    error = only_error(app, sg.InvalidSignature)
    assert line(error) == expected
    assert problem in error.problem


def test_signature_of_a_sink() -> None:
    """A sink takes a frame and a number."""
    app, flights = application()

    @app.sink(inputs=flights)  # type: ignore[type-var]
    def show(batch: DataFrame, batch_id: str) -> None:
        batch.show()

    assert "parameter 'batch_id'" in only_error(app, sg.InvalidSignature).problem


def test_captured_lock_in_a_global() -> None:
    """A lock is found also where only an inner function uses it."""
    app, flights = application()

    @app.operator(inputs=flights)
    def locked(rows: DataFrame) -> DataFrame:
        def inner(value: float) -> float:
            with LOCK:
                return value

        inner(1)
        return rows

    error = only_error(app, sg.NotSerializable)
    assert error.problem == "'locked' captures 'LOCK', a lock, which can't be serialized"


def test_captured_socket_in_a_closure() -> None:
    """A socket is found in a closure."""
    app, flights = application()
    with socket.socket() as connection:

        @app.operator(inputs=flights)
        def connected(rows: DataFrame) -> DataFrame:
            connection.fileno()
            return rows

        assert "'connection', a socket" in only_error(app, sg.NotSerializable).problem


def test_captured_value_that_pickle_rejects() -> None:
    """Whatever else cannot be pickled is reported with pickle's own reason."""
    app, flights = application()
    numbers = (number for number in range(3))

    @app.operator(inputs=flights)
    def numbered(rows: DataFrame) -> DataFrame:
        next(numbers)
        return rows

    assert "'numbers', a generator" in only_error(app, sg.NotSerializable).problem


def test_lock_of_a_function_that_is_called() -> None:
    """Functions of the same module are followed."""
    app, flights = application()

    @app.operator(inputs=flights)
    def indirect(rows: DataFrame) -> DataFrame:
        test_captured_lock_in_a_global()
        return rows

    assert "captures 'LOCK'" in only_error(app, sg.NotSerializable).problem


def test_captured_handles_and_values_are_fine() -> None:
    """Streams, parameters, the application, modules and plain values are no obstacle."""
    app, flights = application()
    url = app.parameter("url", default="x")
    limits = {"late": 15}

    @app.operator(inputs=flights)
    def plain(rows: DataFrame) -> DataFrame:
        print(app, flights, url.value, threading, limits)
        return rows

    assert check(app.graph) == []


def test_notices() -> None:
    """A stream that nothing reads and a missing sink are allowed, but noticed."""
    app, _ = application()
    assert check(app.graph) == []
    assert [notice.text for notice in notices(app.graph)] == [
        "nothing reads stream 'flights'",
        "the application has no sink: it has no effect",
    ]


def test_a_sink_that_writes_what_a_source_reads_is_noticed() -> None:
    """It is a loop over Kafka, which is seldom meant. At other brokers it is another topic."""
    app, flights = application()
    app.kafka_sink("copy", input=flights, topic="flights", bootstrap_servers="other:9092")
    assert notices(app.graph) == []
    app.kafka_sink("back", input=flights, topic="flights")
    assert check(app.graph) == []
    (notice,) = notices(app.graph)
    assert notice.text.startswith("sink 'back' writes topic flights, which source 'flights' reads")


def test_bind_gives_parameters_their_values() -> None:
    """Values replace defaults; a name that does not exist is an error."""
    app, _ = application()
    url = app.parameter("url", default="here")
    assert url.value == "here"
    app.bind({"url": "there"})
    assert url.value == "there"
    with pytest.raises(sg.UnknownParameter, match="has no parameter ulr: it has url"):
        app.bind({"ulr": "there"})


def test_streams_can_be_called_like_their_functions() -> None:
    """So that an operator can be tested by itself; a stream of Kafka can't."""
    app, flights = application()
    received = []

    @app.operator(inputs=flights)
    def passed(rows: DataFrame) -> DataFrame:
        received.append(rows)
        return rows

    frame: Any = object()
    assert passed(frame) is frame
    assert received == [frame]
    with pytest.raises(TypeError, match="'flights' is not made by a Python function"):
        flights(frame)


def committing(*, consistent: bool = True) -> tuple[sg.Application, Any]:
    """Return an application with a sink function, in a consistent region or not."""
    app, flights = application()

    @app.sink(inputs=flights)
    def show_all(batch: DataFrame, batch_id: int) -> None:
        batch.show()

    if consistent:
        app.consistent_region("all", start=flights)
    return app, show_all


def test_a_sink_may_commit() -> None:
    app, sink = committing()

    @app.on_commit(sink)
    def publish(cut: sg.Cut) -> None:
        print(cut.last_batch)

    app.on_prepare("show-all")(publish)
    assert check(app.graph) == []
    assert app.cut_functions == {"show-all": {"commit": publish, "prepare": publish}}


@pytest.mark.parametrize(
    ("commits", "leaves", "wanted", "policy"),
    [
        (True, False, None, "damage"),
        (False, False, None, "never"),
        (True, True, None, "never"),
        (True, True, "failure", "failure"),
    ],
)
def test_a_region_goes_back_by_itself_if_nothing_leaves_it_twice(
    commits: bool, leaves: bool, wanted: Any, policy: str
) -> None:
    """By default; `leaves`: there is a sink that does not commit, too."""
    app, flights = application()

    @app.sink(inputs=flights)
    def show_all(batch: DataFrame, batch_id: int) -> None:
        batch.show()

    if commits:
        app.on_commit(show_all)(print)
    if leaves:
        app.kafka_sink("out", input=flights, topic="out")
    app.consistent_region("all", start=flights, roll_back_on=wanted)
    (region,) = app.graph.consistent_regions
    assert consistent_region(region, app.graph, Path(__file__).parent).roll_back_on == policy


def test_what_may_be_fused_with_a_region_goes_back_with_it() -> None:
    """A sink beside the region would write again what comes behind the cut."""
    app, flights = application()

    @app.operator(inputs=flights)
    def seen(rows: DataFrame) -> DataFrame:
        return rows

    @app.sink(inputs=seen)
    def show_all(batch: DataFrame, batch_id: int) -> None:
        batch.show()

    app.on_commit(show_all)(print)
    app.consistent_region("all", start=seen)
    (region,) = app.graph.consistent_regions
    assert app.graph.all_commits(region)
    app.kafka_sink("copy", input=flights, topic="out")
    assert not app.graph.all_commits(region)


def test_functions_ask_for_cuts() -> None:
    """The PE hears of it; what is wrong is raised at the call."""
    app, _ = committing()
    app.request_cut("all")  # nobody to tell: a build, a test
    heard: list[str] = []
    app.on_cut_request(heard.append)
    app.request_cut("all")
    assert heard == ["all"]
    with pytest.raises(ValueError, match="no consistent region 'al'; there are all"):
        app.request_cut("al")


def test_a_function_of_two_sinks_names_neither() -> None:
    app, flights = application()

    def write(batch: DataFrame, batch_id: int) -> None:
        batch.show()

    for name in ("first", "second"):
        app.sink(inputs=flights, uid=name)(write)
    app.consistent_region("all", start=flights)
    app.on_commit(write)(print)
    expected = here() - 1
    error = only_error(app, sg.InvalidArgument)
    assert line(error) == expected
    assert str(error).endswith(
        "'first' is not the only operator with this function: name one of first, second"
    )


def test_what_is_never_called_at_a_cut() -> None:
    app, sink = committing(consistent=False)
    app.on_commit(sink)(print)
    expected = here() - 1
    error = only_error(app, sg.InvalidArgument)
    assert line(error) == expected
    assert "in no consistent region" in str(error)

    app, _ = committing()
    app.on_commit("flights")(print)
    assert "it is no sink function" in str(only_error(app, sg.InvalidArgument))


def test_a_function_of_a_cut_names_its_sink() -> None:
    """Without, what it decorates is taken for the sink, and never called."""
    app, _ = committing()
    expected = here() + 2

    @app.on_commit
    def publish(batch: DataFrame, batch_id: int) -> None:
        raise AssertionError

    error = only_error(app, sg.InvalidArgument)
    assert line(error) == expected
    assert error.problem == "on_commit is given 'publish', which is no sink's function"
    assert "write @app.on_commit(SINK)" in error.remedy


def test_what_is_prepared_has_to_be_committed() -> None:
    """An edit that takes only `on_commit` away is refused at the build: what was put aside before
    it would never be final."""
    app, sink = committing()
    app.on_prepare(sink)(print)
    expected = here() - 1
    error = only_error(app, sg.InvalidArgument)
    assert line(error) == expected
    assert "on_prepare of 'show-all': the sink has no on_commit" in str(error)


def test_a_sink_commits_in_one_way_and_with_one_argument() -> None:
    app, sink = committing()
    app.on_commit(sink)(print)
    app.on_commit(sink)(print)
    assert "is declared twice" in str(only_error(app, sg.InvalidArgument))

    app, sink = committing()
    app.on_commit(sink)(lambda: None)  # type: ignore[type-var]
    assert "is called with a Cut" in str(only_error(app, sg.InvalidArgument))
