"""Planning on empty streams: schemas, state, output modes, and errors that point at the line."""

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import LongType, StringType, StructField, StructType

import streamgraft as sg
from streamgraft._adl import describe
from streamgraft._analysis import Analysis, analyze
from streamgraft._checks import check
from streamgraft._plan_checks import depends_on_mode, is_stateful, is_timeless, unsupported
from streamgraft._schemas import empty_stream, parse

pytestmark = pytest.mark.integration

SCHEMA = "carrier string, delay double, time timestamp"


class Passing(StatefulProcessor):
    """Keeps nothing, though it could."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare no state."""

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        """Pass the rows."""
        return rows


def application() -> tuple[sg.Application, sg.Stream]:
    """Return an application with one source."""
    app = sg.Application("flights")
    return app, app.kafka_source("flights", topic="flights", schema=SCHEMA)


def planned(app: sg.Application, spark: SparkSession) -> Analysis:
    """Return the plan of an application whose graph is right."""
    assert check(app.graph) == []
    return analyze(app.graph, spark, Path(__file__).parent)


def only_error(
    app: sg.Application, spark: SparkSession, kind: type[sg.ApplicationError]
) -> sg.ApplicationError:
    """Return the single error that planning finds, of exactly this kind."""
    errors = planned(app, spark).errors
    assert [type(error) for error in errors] == [kind], errors
    assert errors[0].location
    assert errors[0].location.file == __file__
    return errors[0]


def line_of(text: str) -> int:
    """Return the only line of the calling test that contains a text."""
    frame = inspect.currentframe()
    assert frame
    assert frame.f_back
    lines, start = inspect.getsourcelines(frame.f_back.f_code)
    found = [start + number for number, line in enumerate(lines) if text in line]
    return found[0]


@pytest.mark.parametrize(
    "schema",
    [
        "id bigint NOT NULL, place struct<x: double NOT NULL>, note string",
        StructType([StructField("id", LongType(), False), StructField("note", StringType())]),
    ],
)
def test_what_is_not_null_is_required_of_records_and_nullable_in_streams(
    spark: SparkSession, schema: str | StructType
) -> None:
    app = sg.Application("numbers")
    for name, text in (("strict", schema), ("lax", "id bigint")):
        rows = app.kafka_source(name, topic=name, schema=text)
        app.kafka_sink(f"{name}-out", input=rows, topic=f"{name}-out")
    result = planned(app, spark)
    assert result.required == {"strict": ["id"]}
    assert all(field.nullable for field in result.schemas["strict"])


def test_schemas_and_state(spark: SparkSession) -> None:
    """Every stream gets a schema, nullable throughout; aggregates keep state."""
    app, flights = application()

    @app.operator(inputs=flights)
    def hourly(rows: DataFrame) -> DataFrame:
        return rows.withColumn("hour", F.hour("time")).withWatermark("time", "1 hour")

    with app.parallel("totals", key="carrier", max_width=4):

        @app.operator(inputs=hourly, output_mode="update")
        def counts(rows: DataFrame) -> DataFrame:
            return rows.groupBy("carrier").count()

    app.split("size", input=counts, outputs={"many": "`count` > 9", "few": "`count` <= 9"})
    result = planned(app, spark)
    assert result.errors == []
    assert result.stateful == {"counts"}
    assert result.schemas["hourly"].names == ["carrier", "delay", "time", "hour"]
    assert all(not field.metadata for field in result.schemas["hourly"].fields)
    counted = StructType([StructField("carrier", StringType()), StructField("count", LongType())])
    assert {name: result.schemas[name] for name in ("counts", "many", "few")} == {
        "counts": counted,
        "many": counted,
        "few": counted,
    }


def test_raw_source_has_the_kafka_columns(spark: SparkSession) -> None:
    """What Spark's Kafka source gives, with headers."""
    app = sg.Application("raw")
    app.kafka_source("records", topic="records", format="raw")
    expected = ["key", "value", "topic", "partition", "offset", "timestamp", "headers"]
    assert planned(app, spark).schemas["records"].names == expected


def test_functions_of_sources_are_not_called(spark: SparkSession) -> None:
    """A source says its schema: what it reads may not be there when the bundle is built."""
    app = sg.Application("flights")

    @app.source(schema=parse(spark, "carrier string"))
    def flights(session: SparkSession) -> DataFrame:
        raise AssertionError("called")

    assert planned(app, spark).schemas["flights"].names == ["carrier"]


@pytest.mark.parametrize("schema", ["carrier strng, delay", "string", ""])
def test_schema_that_cannot_be_parsed(spark: SparkSession, schema: str) -> None:
    """The error is at the source."""
    app = sg.Application("flights")
    app.kafka_source("flights", topic="flights", schema=schema)
    error = only_error(app, spark, sg.SchemaMismatch)
    assert error.location
    assert error.location.line == line_of("app.kafka_source")
    assert "the schema of 'flights' is not valid" in error.problem


def test_stream_without_columns(spark: SparkSession) -> None:
    """It could carry nothing."""
    app, flights = application()

    @app.operator(inputs=flights)
    def nothing(rows: DataFrame) -> DataFrame:
        return rows.select()

    assert "without columns" in only_error(app, spark, sg.SchemaMismatch).problem


def test_function_that_raises(spark: SparkSession) -> None:
    """The error is at the line inside the function, with the original message."""
    app, flights = application()

    @app.operator(inputs=flights)
    def broken(rows: DataFrame) -> DataFrame:
        columns = rows.columns
        assert len(columns) == 3
        return rows.select("carier")  # the slip

    error = only_error(app, spark, sg.PlanningFailed)
    assert error.location
    assert error.location.line == line_of("# the slip")
    assert "`carier` cannot be resolved" in error.problem
    assert "SQLSTATE" not in str(error)
    assert "\n" not in str(error)


def test_function_that_runs_a_query(spark: SparkSession) -> None:
    """Only what can be planned is allowed."""
    app, flights = application()

    @app.operator(inputs=flights)
    def eager(rows: DataFrame) -> DataFrame:
        rows.collect()
        return rows

    assert "streaming sources" in only_error(app, spark, sg.PlanningFailed).problem


def test_result_that_is_no_frame(spark: SparkSession) -> None:
    """A forgotten return is reported."""
    app, flights = application()

    @app.operator(inputs=flights)
    def forgetful(rows: DataFrame):  # type: ignore[no-untyped-def]
        rows.where("delay > 0")

    assert "returns a NoneType" in only_error(app, spark, sg.PlanningFailed).problem


def test_result_that_is_no_stream(spark: SparkSession) -> None:
    """An operator that drops its input would end at once."""
    app, flights = application()

    @app.operator(inputs=flights)
    def fixed(rows: DataFrame) -> DataFrame:
        return rows.sparkSession.range(3)

    assert "not a stream" in only_error(app, spark, sg.PlanningFailed).problem


def test_aggregate_in_append_mode(spark: SparkSession) -> None:
    """Spark's own checker decides; the remedy is named."""
    app, flights = application()

    @app.operator(inputs=flights)
    def counts(rows: DataFrame) -> DataFrame:
        return rows.groupBy("carrier").count()

    error = only_error(app, spark, sg.PlanningFailed)
    assert "in output mode append" in error.problem
    assert "output_mode='update'" in error.remedy


def test_sorted_stream_is_not_possible(spark: SparkSession) -> None:
    """Where no output mode helps, none is suggested."""
    app, flights = application()

    @app.operator(inputs=flights)
    def ordered(rows: DataFrame) -> DataFrame:
        return rows.orderBy("delay")

    error = only_error(app, spark, sg.PlanningFailed)
    assert "Sorting is not supported" in error.problem
    assert "update" not in error.remedy


def counted(column: str, *, by: str) -> Callable[[DataFrame], DataFrame]:
    """Return an operator's function that counts rows per value of a column."""
    return named(by, lambda rows: rows.groupBy(column).agg(F.count("*").alias(by)))


def unique(rows: DataFrame) -> DataFrame:
    """Keep state that looks the same in both output modes."""
    return rows.dropDuplicates(["carrier"])


def windowed(rows: DataFrame) -> DataFrame:
    """Give each count once, when its window is over."""
    late = rows.withWatermark("time", "1 hour")
    return late.groupBy(F.window("time", "1 hour")).count()


def named(
    name: str, function: Callable[[DataFrame], DataFrame]
) -> Callable[[DataFrame], DataFrame]:
    """Return the function under a name, which will be its operator's."""

    def renamed(rows: DataFrame) -> DataFrame:
        return function(rows)

    renamed.__name__ = name
    return renamed


def test_what_spark_can_run_together_is_one_group(spark: SparkSession) -> None:
    """A chain with one aggregate, whose rows go two ways."""
    app, flights = application()
    known = app.operator(inputs=flights)(unique)
    counts = app.operator(inputs=known, output_mode="update")(counted("carrier", by="counts"))
    app.split("size", input=counts, outputs={"many": "`counts` > 9"})
    app.kafka_sink("out", input="many", topic="many")
    app.kafka_sink("all", input=counts, topic="all")
    found = planned(app, spark)
    assert (found.errors, found.notices) == ([], [])
    assert set(found.groups) == {"flights", "unique", "counts", "size", "out", "all"}
    assert len(set(found.groups.values())) == 1


def test_two_aggregates_in_a_row_are_two_groups(spark: SparkSession) -> None:
    """Spark can't run them as one query; and the second one counts updates, which a notice says."""
    app, flights = application()
    counts = app.operator(inputs=flights, output_mode="update")(counted("carrier", by="counts"))
    large = app.operator(inputs=counts)(named("large", lambda rows: rows.where("counts > 9")))
    app.operator(inputs=large, output_mode="update")(counted("counts", by="sizes"))
    app.kafka_sink("out", input="sizes", topic="sizes")
    found = planned(app, spark)
    assert found.errors == []
    assert found.groups["flights"] == found.groups["counts"] == found.groups["large"]
    assert found.groups["sizes"] == found.groups["out"] != found.groups["counts"]
    (notice,) = found.notices
    assert "'sizes' keeps state over rows that 'counts' updates" in notice.text


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (
            named("counts", lambda rows: rows.groupBy("origin").count()),
            "'counts' keeps state by origin, and region 'region' spreads by carrier: each key group"
            " counts for itself, unless carrier follows from origin; use key='origin', or put it"
            " behind the region",
        ),
        (named("counts", lambda rows: rows.groupBy("Carrier", "origin").count()), ""),
        (named("counts", lambda rows: rows.dropDuplicates()), ""),
        (
            named("counts", lambda rows: rows.dropDuplicates(["origin", "delay"])),
            "use key=['origin', 'delay'], or put it behind the region",
        ),
        (
            named("counts", lambda rows: rows.groupBy().count()),
            "'counts' keeps state over all rows, and region 'region' spreads by carrier: each key"
            " group counts for itself; put it behind the region",
        ),
        (
            named("counts", lambda rows: rows.groupBy(F.upper("carrier").alias("name")).count()),
            "keeps state by upper(carrier), and region 'region' spreads by carrier: each key group"
            " counts for itself, unless carrier follows from upper(carrier); put it behind",
        ),
        (
            named(
                "counts",
                lambda rows: rows.groupBy("origin").transformWithStateInPandas(
                    Passing(), SCHEMA, "update", "none"
                ),
            ),
            "keeps state by origin",
        ),
        (
            named(
                "counts",
                lambda rows: rows.groupBy("origin").applyInPandasWithState(
                    lambda key, frames, state: frames, SCHEMA, "n int", "update", "NoTimeout"
                ),
            ),
            "keeps state by origin",
        ),
    ],
)
def test_state_by_other_columns_than_the_region_s_key_is_noticed(
    spark: SparkSession, function: Any, problem: str
) -> None:
    """Each key group has a part of it, at width 1 as well."""
    app = sg.Application("flights")
    flights = app.kafka_source("flights", topic="flights", schema=f"{SCHEMA}, origin string")
    with app.parallel("region", key="carrier", max_width=4):
        app.operator(inputs=flights, output_mode="update")(function)
    app.kafka_sink("out", input="counts", topic="counts")
    found = planned(app, spark)
    assert found.errors == []
    assert len(found.notices) == bool(problem)
    assert all(problem in notice.text for notice in found.notices)


def test_a_key_that_is_renamed_is_only_noticed_and_a_join_is_not(spark: SparkSession) -> None:
    app, flights = application()
    with app.parallel("region", key="carrier", max_width=4):
        short = named("short", lambda rows: rows.withColumnRenamed("carrier", "c"))
        app.operator(inputs=flights)(short)
        app.operator(inputs="short", output_mode="update")(counted("c", by="counts"))

        @app.operator(inputs=[flights, flights])
        def pairs(left: DataFrame, right: DataFrame) -> DataFrame:
            return left.select("carrier").join(right.select("carrier"), "carrier")

    app.kafka_sink("out", input="counts", topic="counts")
    app.kafka_sink("pairs-out", input="pairs", topic="pairs")
    found = planned(app, spark)
    assert found.errors == []
    (notice,) = found.notices
    assert "'counts' keeps state by c, and region 'region' spreads by carrier" in notice.text


def test_an_export_of_records_that_a_crash_sends_again_is_noticed(spark: SparkSession) -> None:
    """A count in the same job drops them; exactly once is no news."""
    for delivery in ("at_least_once", "exactly_once"):
        app, flights = application()
        quick = app.operator(inputs=flights, real_time=True, delivery=delivery)(
            named("quick", lambda rows: rows.where("delay > 9"))
        )
        app.export(quick, name="late", uid="late")
        app.operator(inputs=quick, output_mode="update")(counted("carrier", by="counts"))
        app.kafka_sink("out", input="counts", topic="counts")
        found = planned(app, spark)
        assert found.errors == []
        notices = [notice.text for notice in found.notices]
        assert notices == (
            [
                "'quick' has delivery at_least_once: after a crash it sends records again, and"
                " whoever imports export 'late' takes them for new"
            ]
            if delivery == "at_least_once"
            else []
        )


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        (counted("carrier", by="a"), counted("delay", by="b"), True),
        (counted("carrier", by="a"), windowed, False),
        (counted("carrier", by="a"), unique, True),
        (windowed, unique, False),
    ],
)
def test_two_stateful_operators_side_by_side(
    spark: SparkSession, first: Any, second: Any, together: bool
) -> None:
    """One query has one output mode, and one watermark: who needs another one is split off."""
    app, flights = application()
    for function in (first, second):
        if function in (windowed, unique):
            app.operator(inputs=flights)(function)
        else:
            app.operator(inputs=flights, output_mode="update")(function)
    found = planned(app, spark)
    assert found.errors == []
    names = [function.__name__ for function in (first, second)]
    assert (found.groups[names[0]] == found.groups[names[1]]) == together
    assert found.groups["flights"] == found.groups[names[0]]


def test_a_watermark_holds_in_the_query_of_its_operator(spark: SparkSession) -> None:
    """Spark would let windows wait for those of others, and leave out late rows of other state."""
    app, flights = application()
    rare = app.operator(inputs=flights)(
        named("rare", lambda rows: windowed(rows.where("delay > 999")))
    )
    app.operator(inputs=flights)(windowed)
    late = app.operator(inputs=flights)(
        named("late", lambda rows: rows.withWatermark("time", "1 hour"))
    )
    more = app.operator(inputs=late)(named("more", lambda rows: rows.where("delay > 9")))
    app.operator(inputs=more, output_mode="update")(counted("carrier", by="counts"))
    app.kafka_sink("out", input=rare, topic="rare")
    found = planned(app, spark)
    assert found.errors == []
    groups = found.groups
    assert len({groups[name] for name in ("rare", "windowed", "late", "counts")}) == 4
    assert groups["flights"] == groups["rare"] == groups["out"]
    assert groups["late"] == groups["more"]
    operators = describe(app, found, Path(__file__), "app").operators
    marked = {item.name for item in operators if item.event_time}
    assert marked == {"rare", "windowed", "late"}


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (
            named(
                "python",
                lambda rows: rows.select(
                    F.udf(lambda delay: str(delay), "string")("delay").alias("d")
                ),
            ),
            "Python",
        ),
        (unique, "state"),
        (named("distributed", lambda rows: rows.repartition(3)), "Exchange"),
        (
            named(
                "both",
                lambda rows: rows.where("delay > 9").unionAll(rows.where("delay < 3")),
            ),
            "it reads one of its inputs more than once",
        ),
        (
            named(
                "both",
                lambda rows: rows.sparkSession.sql(
                    "with late as (select carrier from {rows} where delay > 9)"
                    " select carrier from late union all select upper(carrier) from late",
                    rows=rows,
                ),
            ),
            "it reads one of its inputs more than once",
        ),
        (named("renamed", lambda rows: rows.select(F.upper("carrier").alias("c"))), ""),
        (
            named(
                "renamed",
                lambda rows: rows.sparkSession.sql(
                    "with late as (select * from {rows}) select carrier from late", rows=rows
                ),
            ),
            "",
        ),
    ],
)
def test_what_can_run_in_real_time(spark: SparkSession, function: Any, problem: str) -> None:
    """Spark's own list decides; an operator that can has a group apart from those in batches."""
    app, flights = application()
    fast = app.operator(inputs=flights, real_time=True)(function)
    app.operator(inputs=fast)(named("slow", lambda rows: rows.limit(3)))
    if problem:
        error = only_error(app, spark, sg.PlanningFailed)
        assert "can't run in real time" in error.problem
        assert problem in error.problem
    else:
        groups = planned(app, spark).groups
        assert groups["flights"] == groups["renamed"] != groups["slow"]


def test_key_of_a_region_has_to_be_in_the_stream(spark: SparkSession) -> None:
    """Checked where the stream enters; inside the region the column may go."""
    app, flights = application()
    with app.parallel("region", key=["carrier", "origin"], max_width=4):

        @app.operator(inputs=flights)  # enters
        def passed(rows: DataFrame) -> DataFrame:
            return rows.drop("carrier")

        @app.operator(inputs=passed)
        def further(rows: DataFrame) -> DataFrame:
            return rows

    error = only_error(app, spark, sg.SchemaMismatch)
    assert error.location
    assert error.location.line == line_of("# enters")
    assert "without the key column origin" in error.problem
    assert f"test_analysis.py:{line_of('app.parallel')}" in error.remedy


def test_split_condition_has_to_fit_the_stream(spark: SparkSession) -> None:
    """Neither unknown columns nor anything that is no SQL."""
    app, flights = application()
    app.split("by-origin", input=flights, outputs={"newark": "origin = 'EWR'"})
    app.split("by-delay", input=flights, outputs={"late": "delay >"})
    app.split("by-name", input=flights, outputs={"named": "carrier"})
    errors = planned(app, spark).errors
    assert [type(error) for error in errors] == [sg.SchemaMismatch] * 3
    assert errors[0].remedy == "it has the columns carrier, delay, time"


def test_columns_of_a_sink(spark: SparkSession) -> None:
    """The key has to be there, and `value` for raw records."""
    app, flights = application()
    app.kafka_sink("keyed", input=flights, topic="a", key=["origin"])
    app.kafka_sink("raw", input=flights, topic="b", format="raw")
    problems = [error.problem for error in planned(app, spark).errors]
    assert ["needs the column origin" in problems[0], "needs the column value" in problems[1]] == [
        True,
        True,
    ]


def test_types_of_a_raw_sink(spark: SparkSession) -> None:
    """What can't be cast to a record's own columns fails at build time, and not in the pod."""
    app = sg.Application("raw")
    fit = app.kafka_source("fit", topic="fit", format="raw")
    words = app.kafka_source("words", topic="words", schema="key int, value string")
    numbers = app.kafka_source(
        "numbers", topic="numbers", schema="key int, value double, headers string"
    )
    app.kafka_sink("copy", input=fit, topic="a", format="raw")
    app.kafka_sink("keyed", input=words, topic="b", key="key", format="raw")
    app.kafka_sink("wrong", input=numbers, topic="c", format="raw")
    errors = planned(app, spark).errors
    assert [type(error) for error in errors] == [sg.SchemaMismatch] * 3
    kafka = "array<struct<key:string,value:binary>>"
    assert [error.problem for error in errors] == [
        "sink 'wrong' needs binary in column key, and stream 'numbers' has int",
        "sink 'wrong' needs binary in column value, and stream 'numbers' has double",
        f"sink 'wrong' needs {kafka} in column headers, and stream 'numbers' has string",
    ]


def test_columns_of_one_name(spark: SparkSession) -> None:
    """A join that keeps both key columns can't be written as a JSON object."""
    app, flights = application()

    @app.operator(inputs=[flights, flights])
    def joined(left: DataFrame, right: DataFrame) -> DataFrame:
        return left.join(right, left.carrier == right.carrier)

    assert "two columns" in only_error(app, spark, sg.SchemaMismatch).problem


def test_a_column_in_which_unread_records_are_noted(spark: SparkSession) -> None:
    app = sg.Application("flights")
    app.kafka_source("flights", topic="flights", schema="Streamgraft_malformed string, n int")
    error = only_error(app, spark, sg.SchemaMismatch)
    assert error.problem == "'flights' makes a stream with a column streamgraft_malformed"


def test_columns_that_json_cannot_carry(spark: SparkSession) -> None:
    """Between processing elements rows are JSON objects."""
    app, flights = application()

    @app.operator(inputs=flights)
    def mapped(rows: DataFrame) -> DataFrame:
        return rows.select(F.create_map(F.lit(1), "carrier").alias("names"))

    assert "can't be written as JSON" in only_error(app, spark, sg.SchemaMismatch).problem


def test_one_failure_hides_no_other(spark: SparkSession) -> None:
    """Operators behind a failed one are left out, the others are still planned."""
    app, flights = application()

    @app.operator(inputs=flights)
    def first(rows: DataFrame) -> DataFrame:
        return rows.select("nowhere")

    @app.operator(inputs=first)
    def behind(rows: DataFrame) -> DataFrame:
        raise AssertionError("called")

    @app.operator(inputs=flights)
    def second(rows: DataFrame) -> DataFrame:
        return rows.select("neither")

    assert [error.problem.split("'")[1] for error in planned(app, spark).errors] == [
        "first",
        "second",
    ]


@pytest.mark.parametrize(
    "kind",
    ["distinct", "deduplicated", "joined", "limited", "aggregated", "grouped", "transformed"],
)
def test_what_keeps_state(spark: SparkSession, kind: str) -> None:
    """Whatever remembers rows across batches; only over streams."""
    rows = empty_stream(spark, parse(spark, SCHEMA))
    frame = {
        "distinct": rows.select("carrier").distinct(),
        "deduplicated": rows.dropDuplicates(["carrier"]),
        "joined": rows.join(empty_stream(spark, parse(spark, SCHEMA)), "carrier"),
        "limited": rows.limit(3),
        "aggregated": rows.groupBy("carrier").count(),
        "grouped": rows.groupBy("carrier").applyInPandasWithState(
            lambda key, frames, state: frames, SCHEMA, "n int", "update", "NoTimeout"
        ),
        "transformed": rows.groupBy("carrier").transformWithStateInPandas(
            Passing(), SCHEMA, "update", "none"
        ),
    }[kind]
    assert is_stateful(frame)


def test_what_keeps_no_state(spark: SparkSession) -> None:
    """A join with a table, even an aggregated one, and a filter."""
    rows = empty_stream(spark, parse(spark, SCHEMA))
    table = spark.range(3).groupBy(F.col("id").cast("string").alias("carrier")).count()
    frame = rows.join(table, "carrier").where("delay > 3")
    assert not is_stateful(frame)
    assert unsupported(spark, frame, "append") is None


@pytest.mark.parametrize(
    ("text", "timeless"),
    [
        ("select distinct carrier from {rows}", True),
        ("select carrier from {rows} union select carrier from {rows}", True),
        ("select carrier from {rows} except select carrier from {table}", True),
        ("select carrier from {rows} except all select carrier from {table}", False),
        ("with known as (select distinct carrier from {rows}) select * from known", True),
        ("with late as (select * from {rows}) select distinct carrier from late", True),
    ],
)
def test_what_keeps_state_in_sql(spark: SparkSession, text: str, timeless: bool) -> None:
    """Spark makes aggregations of these, which have no rows of their own in append mode."""
    rows = empty_stream(spark, parse(spark, SCHEMA))
    table = spark.createDataFrame([("AA",)], "carrier string")
    frame = spark.sql(text, rows=rows, table=table)
    assert is_stateful(frame)
    assert is_timeless(frame) == timeless
    assert depends_on_mode(frame)
    assert not is_stateful(spark.sql("select distinct carrier from {table}", table=table))


@pytest.mark.parametrize("form", ["kafka", "rate", "text"])
def test_streams_that_are_no_inputs_are_refused(
    spark: SparkSession, tmp_path: Path, form: str
) -> None:
    """Each shard would read all of it, or what is not of its keys."""
    app, flights = application()
    options = {"kafka.bootstrap.servers": "localhost:1", "subscribe": "rules"}

    @app.operator(inputs=flights)
    def ruled(rows: DataFrame) -> DataFrame:
        reader = rows.sparkSession.readStream.format(form).options(**options)
        rules = reader.load(str(tmp_path)) if form == "text" else reader.load()
        rules = rules.select(F.lit("x").alias("carrier"))
        return rows.select("carrier").unionByName(rules)

    error = only_error(app, spark, sg.PlanningFailed)
    assert "'ruled' reads a stream that is none of its inputs" in error.problem
    assert "app.kafka_source or app.source" in error.remedy


def test_functions_may_name_their_queries_in_sql(spark: SparkSession) -> None:
    """What a WITH defines may be read twice, and reads its input alone."""
    app, flights = application()

    @app.operator(inputs=flights)
    def busy(rows: DataFrame) -> DataFrame:
        text = (
            "with late as (select carrier from {rows} where delay > 9)"
            " select carrier from late union all select upper(carrier) from late"
        )
        return rows.sparkSession.sql(text, rows=rows)

    @app.operator(inputs=busy)
    def ruled(rows: DataFrame) -> DataFrame:
        rows.sparkSession.readStream.format("rate").load().createOrReplaceTempView("rates")
        text = "with rules as (select 'x' as carrier from rates) select * from rules"
        return rows.unionByName(rows.sparkSession.sql(text))

    error = only_error(app, spark, sg.PlanningFailed)
    assert "'ruled' reads a stream that is none of its inputs (rate" in error.problem


def test_one_input_may_be_read_in_several_ways(spark: SparkSession) -> None:
    """Tables beside it are no streams."""
    app, flights = application()

    @app.operator(inputs=flights)
    def both(rows: DataFrame) -> DataFrame:
        names = rows.sparkSession.range(3).selectExpr("cast(id as string) as carrier")
        late = rows.where("delay > 9").select("carrier")
        return late.unionByName(rows.select("carrier")).join(names, "carrier")

    assert planned(app, spark).errors == []
