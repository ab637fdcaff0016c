"""What the rows of an application's streams keep on their way between PEs, on real Spark."""

import json
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.pe_runtime.hops import Hops

import streamgraft as sg
from streamgraft._schemas import empty_stream, parse
from streamgraft._state_schemas import state_tables
from streamgraft_common.frames import told_apart

pytestmark = pytest.mark.integration


def test_streams_made_of_one_can_be_joined(spark: SparkSession, tmp_path: Path) -> None:
    """Their columns are told apart where that one comes from another PE, too."""
    app = sg.Application("shop")
    clicks = app.kafka_source("clicks", topic="clicks", schema="user string, kind string, n int")
    with app.parallel("users", key="user", max_width=2):

        @app.operator(inputs=clicks)
        def views(rows: DataFrame) -> DataFrame:
            return rows.where("kind = 'view'")

        @app.operator(inputs=clicks)
        def buys(rows: DataFrame) -> DataFrame:
            return rows.where("kind = 'buy'")

        @app.operator(inputs=[views, buys])
        def bought(views: DataFrame, buys: DataFrame) -> DataFrame:
            same = (views.user == buys.user) & (views.n < buys.n)
            return views.join(buys, same).select(views.user, views.n, buys.n.alias("m"))

        @app.operator(inputs=[clicks, clicks])
        def next_ones(first: DataFrame, second: DataFrame) -> DataFrame:
            same = (first.user == second.user) & (first.n == second.n - 1)
            return first.join(second, same).select(first.user, second.n)

    app.kafka_sink("pairs", input=bought, topic="pairs")
    app.kafka_sink("nexts", input=next_ones, topic="nexts")
    rows = [("a", "view", 1), ("a", "buy", 2), ("b", "view", 3), ("a", "buy", 5)]
    values = [{"user": user, "kind": kind, "n": n} for user, kind, n in rows]
    hops = Hops(app, spark, tmp_path, clicks=values)
    assert any({"views", "buys", "bought"} <= {*pe.operators} for pe in hops.pes)
    assert [value for _, value in hops.written("pairs")] == [
        {"user": "a", "n": 1, "m": 2},
        {"user": "a", "n": 1, "m": 5},
    ]
    assert [value for _, value in hops.written("nexts")] == [{"user": "a", "n": 2}]


def test_a_column_has_any_name(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's decoder would take this one for its own."""
    app = sg.Application("parsed")
    logs = app.kafka_source("logs", topic="logs", schema="k string, _corrupt_record string")
    with app.parallel("work", key="k", max_width=2):
        passed = app.operator(inputs=logs, uid="passed")(lambda logs: logs)
    app.kafka_sink("out", input=passed, topic="out")
    rows = [{"k": "a", "_corrupt_record": "{"}, {"k": "b"}]
    hops = Hops(app, spark, tmp_path, logs=rows)
    assert len(hops.pes) > 1
    assert [value for _, value in hops.written("out")] == rows


def test_raw_records_have_the_columns_of_the_build(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's Kafka source has one more."""
    app = sg.Application("raw")
    records = app.kafka_source("records", topic="records", format="raw")

    @app.operator(inputs=records)
    def columns(records: DataFrame) -> DataFrame:
        return records.select(F.lit(" ".join(records.columns)).alias("columns"))

    app.kafka_sink("out", input=columns, topic="out")
    hops = Hops(app, spark, tmp_path, records=["a"])
    (stream,) = [stream for stream in hops.adl.streams if stream.name == "records"]
    names = " ".join(field["name"] for field in stream.stream_schema["fields"])
    assert [value for _, value in hops.written("out")] == [{"columns": names}]


def test_conditions_may_end_with_comments(spark: SparkSession, tmp_path: Path) -> None:
    app = sg.Application("sizes")
    numbers = app.kafka_source("numbers", topic="numbers", schema="n int")
    app.split("size", input=numbers, outputs={"large": "n > 1 -- large", "all": "true -- all"})
    app.split("parity", input="large", outputs={"even": "n % 2 = 0 -- even", "odd": "n % 2 = 1"})
    for name in ("large", "all", "even", "odd"):
        app.kafka_sink(f"{name}-out", input=name, topic=name)
    hops = Hops(app, spark, tmp_path, numbers=[{"n": n} for n in range(4)])
    found = {
        name: [value["n"] for _, value in hops.written(name)]
        for name in ("large", "all", "even", "odd")
    }
    assert found == {"large": [2, 3], "all": [0, 1, 2, 3], "even": [2], "odd": [3]}


MOMENTS = {
    "1970-01-01T00:00:00Z": "1970-01-01T01:00:00.000000+01:00",
    "2026-07-01T00:00:00.123456Z": "2026-07-01T02:00:00.123456+02:00",
    # Berlin's own time until 1893, and years that need more than four digits, or less than none
    "1880-06-09T00:00:00Z": "1880-06-09T00:53:28.000000+00:53:28",
    "-0043-03-15T12:00:00Z": "-0043-03-15T12:53:28.000000+00:53:28",
    "+11476-08-15T05:20:00Z": "+11476-08-15T07:20:00.000000+02:00",
}


def test_moments_stay_what_they_are(spark: SparkSession, tmp_path: Path) -> None:
    """Whatever their zone's offset was then."""
    app = sg.Application("moments")
    texts = app.kafka_source("moments", topic="moments", schema="n int, text string")

    @app.operator(inputs=texts)
    def parsed(rows: DataFrame) -> DataFrame:
        return rows.select("n", F.col("text").cast("timestamp").alias("t"))

    with app.parallel("work", key="n", max_width=2):

        @app.operator(inputs=parsed)
        def micros(rows: DataFrame) -> DataFrame:
            return rows.withColumn("micros", F.unix_micros("t"))

    app.kafka_sink("out", input=micros, topic="out")
    rows = [{"n": n, "text": text} for n, text in enumerate(MOMENTS)]
    zone = "spark.sql.session.timeZone"
    before = spark.conf.get(zone)
    spark.conf.set(zone, "Europe/Berlin")
    try:
        hops = Hops(app, spark, tmp_path, moments=rows)
        assert len(hops.pes) > 1
        found = [value for _, value in hops.written("out")]
        literals = ", ".join(f"unix_micros(timestamp '{text}')" for text in MOMENTS)
        (expected,) = spark.sql(f"select array({literals}) as micros").collect()
    finally:
        spark.conf.set(zone, before or "UTC")
    assert [row["t"] for row in found] == list(MOMENTS.values())
    assert [row["micros"] for row in found] == expected.micros


def test_zeros_of_both_signs_go_to_one_key_group(spark: SparkSession, tmp_path: Path) -> None:
    """Spark groups them as one key; other keys stay where they are."""
    app = sg.Application("numbers")
    numbers = app.kafka_source("numbers", topic="numbers", schema="n int, f float, d double")

    @app.operator(inputs=numbers)
    def given(rows: DataFrame) -> DataFrame:
        return rows.where("n >= 0")

    with app.parallel("work", key=["f", "d"], max_width=2):
        passed = app.operator(inputs=given, uid="passed")(lambda rows: rows)
    app.kafka_sink("out", input=passed, topic="out", key=["f", "d"])
    rows = [{"n": 0, "f": -0.0, "d": -0.0}, {"n": 1, "f": 0.1, "d": 0.1}, {"n": 2, "f": 1e30}]
    hops = Hops(app, spark, tmp_path, numbers=rows)
    (topic,) = {port.topic for pe in hops.pes for port in pe.inputs if not port.external}
    keys = {value["n"]: json.loads(key or "") for key, value in hops.written(topic)}
    assert keys == {0: ["0.0", "0.0"], 1: ["0.1", "0.1"], 2: ["1.0E30", None]}
    outside = {value["n"]: json.loads(key or "") for key, value in hops.written("out")}
    assert outside[0] == ["-0.0", "-0.0"]


def test_told_apart_state_and_watermarks_are_the_same(spark: SparkSession) -> None:
    """A query that runs goes on from its checkpoint."""

    def joined(left: DataFrame, right: DataFrame) -> DataFrame:
        return left.join(right.drop("n"), "user")

    frames = [
        empty_stream(spark, parse(spark, f"user string, `a.{name}` string, time timestamp, n int"))
        .where("n > 3")
        .withWatermark("time", "1 minute")
        for name in ("left", "right")
    ]
    apart = told_apart(frames)
    assert [frame.schema for frame in apart] == [frame.schema for frame in frames]
    for left, right in (frames, (frames[0], frames[0].where("n > 4"))):
        apart = told_apart([left, right])
        assert state_tables(joined(*apart), "append") == state_tables(joined(left, right), "append")
    (alone,) = told_apart(frames[:1])
    assert alone is frames[0]
