"""`streamgraft.testing`: operators on given rows, and the project that `streamgraft init` makes."""

import datetime
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from typer.testing import CliRunner

import streamgraft as sg
from streamgraft._analysis_session import analysis_session
from streamgraft.cli._app import app as command_line
from streamgraft.testing import GraphTest, Results
from streamgraft.testing.live import LiveJob
from streamgraft_local import Cluster

app = sg.Application("clicks")
least = app.parameter("least", default="0")
clicks = app.kafka_source("clicks", topic="clicks", schema="user string, millis bigint")


@app.operator(inputs=clicks)
def long_ones(rows: DataFrame) -> DataFrame:
    """Leave out short clicks."""
    return rows.where(F.col("millis") >= int(least.value))


@app.operator(inputs=long_ones, output_mode="update")
def totals(rows: DataFrame) -> DataFrame:
    """Sum up each user's time."""
    return rows.groupBy("user").agg(F.sum("millis").alias("millis"))


slow, quick = app.split(
    "pace", input=totals, outputs={"slow": "millis >= 100", "quick": "millis < 100"}
)
app.kafka_sink("slow-users", input=slow, topic="slow-users")
app.kafka_sink("quick-users", input=quick, topic="quick-users")

ADA = {"user": "ada", "millis": 90}
BOB = {"user": "bob", "millis": 5}


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    """A small driver."""
    with analysis_session({"spark.sql.shuffle.partitions": "1"}) as spark:
        yield spark


@pytest.fixture
def graph(session: SparkSession) -> Iterator[GraphTest]:
    """The application above, with its parameters' defaults."""
    yield GraphTest(app, session)
    app.bind({"least": "0"})


@pytest.mark.integration
def test_a_run_shows_every_stream_behind_its_inputs(graph: GraphTest) -> None:
    results = graph.run(clicks=[ADA, ADA, BOB])
    results.expect("totals", [{"user": "ada", "millis": 180}, BOB])
    results.expect("slow", [{"user": "ada", "millis": 180}])
    assert results.rows("quick") == [BOB]


@pytest.mark.integration
def test_a_run_may_begin_in_the_middle(graph: GraphTest) -> None:
    graph.run(long_ones=[BOB]).expect("totals", [BOB])


@pytest.mark.integration
def test_parameters_can_be_bound(graph: GraphTest) -> None:
    graph.bind({"least": "50"})
    graph.run(clicks=[ADA, BOB]).expect("long-ones", [ADA])


@pytest.mark.integration
def test_state_grows_from_batch_to_batch(graph: GraphTest) -> None:
    results = graph.stream("totals", "long-ones", clicks=[[ADA, BOB], [ADA]])
    assert results.batches("totals") == 2
    results.expect("totals", [ADA, BOB])
    results.expect("totals", [{"user": "ada", "millis": 180}], batch=1)
    results.expect("long-ones", [ADA], batch=1)


def minutes(session: SparkSession) -> GraphTest:
    """Return an application whose last operator closes windows, two in output mode update apart."""
    timed = sg.Application("minutes")
    schema = "user string, time timestamp"
    shown = timed.kafka_source("shown", topic="shown", schema=schema)
    bought = timed.kafka_source("bought", topic="bought", schema=schema)

    @timed.operator(inputs=[shown, bought])
    def seen(shown: DataFrame, bought: DataFrame) -> DataFrame:
        return shown.unionByName(bought)

    @timed.operator(inputs=seen, output_mode="update")
    def latest(rows: DataFrame) -> DataFrame:
        return rows.groupBy("user").agg(F.max("time").alias("time"))

    @timed.operator(inputs=latest)
    def by_minute(rows: DataFrame) -> DataFrame:
        timed = rows.withWatermark("time", "0 seconds")
        counted = timed.groupBy(F.window("time", "1 minute")).agg(F.count("*").alias("users"))
        return counted.select(F.col("window.start").alias("minute"), "users")

    timed.kafka_sink("result", input=by_minute, topic="result")
    return GraphTest(timed, session)


def at(minute: int) -> dict[str, object]:
    """Return a row of a minute."""
    return {"user": "ada", "time": datetime.datetime(2026, 1, 1, 0, minute)}


@pytest.mark.integration
def test_windows_close_as_in_a_job(session: SparkSession) -> None:
    """Behind a stream that is given, whatever the output mode of the operator that makes it."""
    graph = minutes(session)
    results = graph.stream("by-minute", latest=[[at(0)], [at(0)], [at(9)]])
    found = [results.rows("by-minute", batch) for batch in range(results.batches("by-minute"))]
    closed = {"minute": datetime.datetime(2026, 1, 1), "users": 2}
    assert [rows for rows in found if rows] == [[closed]]
    with pytest.raises(ValueError, match="a job runs 'latest' and 'by-minute' apart"):
        graph.stream("by-minute", seen=[[at(0)]])


@pytest.mark.integration
def test_a_watermark_of_another_operator_is_that_of_another_query(session: SparkSession) -> None:
    app = sg.Application("late")
    clicks = app.kafka_source("clicks", topic="clicks", schema="user string, time timestamp")

    @app.operator(inputs=clicks)
    def timed(rows: DataFrame) -> DataFrame:
        return rows.withWatermark("time", "1 minute")

    @app.operator(inputs=timed, output_mode="update")
    def counts(rows: DataFrame) -> DataFrame:
        return rows.groupBy("user").count()

    app.kafka_sink("out", input=counts, topic="out")
    graph = GraphTest(app, session)
    with pytest.raises(ValueError, match="a job runs 'counts' and 'timed' apart, since a water"):
        graph.stream("counts", clicks=[[at(0)]])
    graph.stream("counts", timed=[[at(0)]]).expect("counts", [{"user": "ada", "count": 1}])


@pytest.mark.integration
def test_inputs_that_are_not_given_are_empty_streams(session: SparkSession) -> None:
    results = minutes(session).stream("seen", "latest", bought=[[at(0)], [at(1)]])
    assert results.batches("seen") == 2
    results.expect("seen", [at(1)], batch=1)
    results.expect("latest", [at(1)], batch=1)


@pytest.mark.integration
def test_differences_and_unknown_names_are_errors(graph: GraphTest) -> None:
    results = graph.run(clicks=[ADA])
    with pytest.raises(AssertionError, match=r"(?s)\+ .*90.*- .*91"):
        results.expect("totals", [{"user": "ada", "millis": 91}])
    with pytest.raises(ValueError, match="no results of a stream 'sums'"):
        results.rows("sums")
    with pytest.raises(ValueError, match="no stream 'click': it has clicks"):
        graph.run(click=[])
    with pytest.raises(ValueError, match="has the column name, which the stream lacks"):
        graph.run(clicks=[{"name": "ada"}])


@pytest.mark.integration
def test_rows_may_come_from_an_iterator(graph: GraphTest) -> None:
    graph.run(clicks=(row for row in [ADA, BOB])).expect("totals", iter([ADA, BOB]))
    batches = (iter([row]) for row in [ADA, BOB])
    results = graph.stream("totals", clicks=batches)
    results.expect("totals", [ADA])
    results.expect("totals", [BOB], batch=1)


@pytest.mark.integration
def test_frames_have_the_columns_of_their_stream(graph: GraphTest, session: SparkSession) -> None:
    """In any order: they are brought into that of the schema."""
    turned = session.createDataFrame([(90, "ada")], "millis bigint not null, user string")
    results = graph.run(clicks=turned)
    assert results.frame("clicks").columns == ["user", "millis"]
    results.expect("totals", turned)
    graph.stream("totals", clicks=[turned, turned]).expect("totals", turned)


@pytest.mark.integration
@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("user string", "the frame lacks millis: the stream's columns are user, millis"),
        ("user string, millis bigint, page string", "the frame has besides page: the stream's"),
        ("user string, ms bigint", "the frame lacks millis and has besides ms: the stream's"),
        ("user string, millis bigint, user string", "the frame has besides user: the stream's"),
    ],
)
def test_frames_of_other_columns_are_refused(
    graph: GraphTest, session: SparkSession, schema: str, message: str
) -> None:
    other = session.createDataFrame([], schema)
    with pytest.raises(ValueError, match=message):
        graph.run(clicks=other)
    with pytest.raises(ValueError, match=message):
        graph.run(clicks=[]).expect("totals", other)


@pytest.mark.integration
def test_frames_of_other_types_are_refused(graph: GraphTest, session: SparkSession) -> None:
    other = session.createDataFrame([], "user string, millis string")
    message = "column millis of the frame has type string, that of the stream bigint"
    with pytest.raises(ValueError, match=message):
        graph.run(clicks=other)
    with pytest.raises(ValueError, match=message):
        graph.stream("totals", clicks=[other])


def test_a_stream_may_have_had_no_batch() -> None:
    assert Results({"totals": []}).batches("totals") == 0


def test_init_makes_a_project_and_overwrites_nothing(tmp_path: Path) -> None:
    first = CliRunner().invoke(command_line, ["init", str(tmp_path / "counting")])
    assert first.exit_code == 0, first.output
    assert 'sg.Application("counting"' in (tmp_path / "counting" / "app.py").read_text()
    again = CliRunner().invoke(command_line, ["init", str(tmp_path / "counting")])
    assert (again.exit_code, "exists already" in again.stderr) == (1, True)
    long = CliRunner().invoke(command_line, ["init", str(tmp_path / ("a" * 41))])
    assert (long.exit_code, "at most 40" in long.stderr) == (1, True)
    assert not (tmp_path / ("a" * 41)).exists()
    bad = CliRunner().invoke(command_line, ["init", str(tmp_path / "Ünïcode")])
    assert (bad.exit_code, "--name" in bad.stderr) == (1, True)
    nowhere = CliRunner().invoke(command_line, ["test", str(tmp_path / "nowhere")])
    assert (nowhere.exit_code, "there is no such folder" in nowhere.stderr) == (1, True)


@pytest.mark.e2e
def test_the_tests_of_a_new_project_pass(cluster: Cluster, tmp_path: Path) -> None:
    """Those on rows as a user runs them; then the whole job, on an environment that runs."""
    made = CliRunner().invoke(command_line, ["init", str(tmp_path / "counting")])
    assert made.exit_code == 0, made.output
    command = [sys.executable, "-m", "streamgraft.cli", "test", str(tmp_path / "counting")]
    tested = subprocess.run(command, capture_output=True, text=True, check=False)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "3 passed" in tested.stdout
    # A word each: of several words Spark may make several batches, and so several totals.
    rows = [{"user": "ada", "text": "Hello"}, {"user": "bob", "text": "hello"}]
    with LiveJob.of(cluster, tmp_path / "counting" / "app.py") as job:
        job.write("messages", rows, key="user")
        totals = {row["user"]: row["words"] for row in job.read("counting-totals", 2)}
        assert totals == {"ada": 1, "bob": 1}
