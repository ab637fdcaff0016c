"""What is written behind a region and runs in its channels."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import streamgraft as sg
from streamgraft._adl import describe
from streamgraft._analysis import Analysis, analyze
from streamgraft._checks import check
from streamgraft._graph import Delivery

pytestmark = pytest.mark.integration

Function = Callable[[DataFrame], DataFrame]


def counted(rows: DataFrame) -> DataFrame:
    """Keep state."""
    return rows.groupBy("key").agg(F.count("*").alias("n"))


def selected(rows: DataFrame) -> DataFrame:
    """Pass rows on."""
    return rows.selectExpr("key", "n + 1 as n")


def in_python(rows: DataFrame) -> DataFrame:
    """Take rows through Python."""

    def same(batches: Iterator[Any]) -> Iterator[Any]:
        yield from batches

    return rows.mapInArrow(same, rows.schema)


def spread(rows: DataFrame) -> DataFrame:
    """Shuffle rows."""
    return rows.repartition(2)


def timed(rows: DataFrame) -> DataFrame:
    """Say how late records may be."""
    return rows.withColumn("time", F.timestamp_seconds("n")).withWatermark("time", "1 minute")


def application(**region: Any) -> tuple[sg.Application, sg.Stream]:
    """Return an application with a region that counts, and its stream."""
    app = sg.Application("counts")
    records = app.kafka_source("records", topic="in", schema="key string")
    with app.parallel("work", key="key", max_width=4):
        counts = app.operator(inputs=records, output_mode="update", uid="counts", **region)(counted)
    return app, counts


def planned(app: sg.Application, spark: SparkSession) -> Analysis:
    """Return the plan of an application in which nothing is wrong."""
    assert check(app.graph) == []
    analysis = analyze(app.graph, spark, Path(__file__).parent)
    assert analysis.errors == []
    return analysis


def test_a_chain_without_state_and_its_sinks_join(spark: SparkSession) -> None:
    app, counts = application()
    app.kafka_sink("raw", input=counts, topic="raw", key="key")
    found = planned(app, spark)
    assert found.regions == {"raw": "work"}

    app, counts = application()
    more = app.operator(inputs=counts, uid="more")(selected)
    most = app.operator(inputs=more, uid="most")(selected)
    app.kafka_sink("out", input=most, topic="out", key="key", partitions=4)
    app.kafka_sink("copy", input=most, topic="copy", delivery="at_least_once")
    found = planned(app, spark)
    assert found.regions == dict.fromkeys(("more", "most", "out", "copy"), "work")
    assert len({found.groups[name] for name in ("counts", "more", "most", "out", "copy")}) == 1


def test_what_joins_weighs_as_much_as_what_it_stands_behind(spark: SparkSession) -> None:
    """A processing element has the largest weight of its operators, 1 by default."""
    app = sg.Application("counts")
    records = app.kafka_source("records", topic="in", schema="key string")
    scaling = sg.Autoscaling(utilization_weights={"counts": 0.0})
    with app.parallel("work", key="key", max_width=4, autoscaling=scaling):
        counts = app.operator(inputs=records, output_mode="update", uid="counts")(counted)
        other = app.operator(inputs=records, output_mode="update", uid="other")(counted)
    more = app.operator(inputs=counts, uid="more")(selected)
    app.kafka_sink("out", input=more, topic="out")
    app.kafka_sink("other-out", input=other, topic="other")
    (region,) = describe(app, planned(app, spark), Path(__file__), "app").regions
    assert region.autoscaling
    assert region.autoscaling.utilization_weights == {"counts": 0.0, "more": 0.0, "out": 0.0}
    assert scaling.utilization_weights == {"counts": 0.0}


@pytest.mark.parametrize("function", [in_python, spread, timed])
def test_python_shuffles_and_watermarks_stay_outside(
    spark: SparkSession, function: Function
) -> None:
    app, counts = application()
    more = app.operator(inputs=counts, uid="more")(function)
    app.kafka_sink("out", input=more, topic="out")
    assert planned(app, spark).regions == {}


def test_state_stays_outside(spark: SparkSession) -> None:
    app, counts = application()
    more = app.operator(inputs=counts, output_mode="update", uid="more")(counted)
    app.kafka_sink("out", input=more, topic="out")
    assert planned(app, spark).regions == {}


def test_what_is_kept_apart_or_asks_for_a_place_stays_outside(spark: SparkSession) -> None:
    app, counts = application()
    app.kafka_sink("apart", input=counts, topic="a", apart=True)
    app.kafka_sink("elsewhere", input=counts, topic="b", bootstrap_servers="127.0.0.1:1")
    assert planned(app, spark).regions == {}
    for asked in ({"apart": True}, {"restartable": False}, {"placement": sg.Placement(host="n")}):
        app, counts = application()
        more = app.operator(inputs=counts, uid="more", **asked)(selected)
        app.kafka_sink("out", input=more, topic="out")
        assert planned(app, spark).regions == {}


def test_of_several_readers_only_sinks_join(spark: SparkSession) -> None:
    """Spark would keep the state once for each way to an output."""
    app, counts = application()
    more = app.operator(inputs=counts, uid="more")(selected)
    app.kafka_sink("out", input=more, topic="out")
    app.kafka_sink("raw", input=counts, topic="raw")
    assert planned(app, spark).regions == {"raw": "work"}


def test_nothing_joins_unless_all_behind_it_does(spark: SparkSession) -> None:
    """There would be a hop all the same."""
    app, counts = application()
    more = app.operator(inputs=counts, uid="more")(selected)
    app.kafka_sink("out", input=more, topic="out")
    last = app.operator(inputs=more, uid="last")(in_python)
    app.kafka_sink("last-out", input=last, topic="last")
    assert planned(app, spark).regions == {}


def test_what_cannot_share_a_plan_stays_outside_with_all_around_it(spark: SparkSession) -> None:
    """There would be a hop within the region."""

    def picky(rows: DataFrame) -> DataFrame:
        plan: Any = rows._jdf
        assert "Aggregate" not in plan.queryExecution().analyzed().toString()
        return rows

    app, counts = application()
    more = app.operator(inputs=counts, uid="more")(selected)
    last = app.operator(inputs=more, uid="last")(picky)
    app.kafka_sink("out", input=last, topic="out")
    found = planned(app, spark)
    assert found.regions == {}
    assert found.groups["counts"] != found.groups["last"]


def test_in_real_time_a_lone_sink_joins_that_writes_the_same_way(spark: SparkSession) -> None:
    for sink, joined in (
        ({}, True),
        ({"delivery": "at_least_once"}, False),
        ({"options": {"kafka.linger.ms": "5"}}, False),
    ):
        app = sg.Application("passing")
        records = app.kafka_source("records", topic="in", schema="key string, n int")
        with app.parallel("work", key="key", max_width=4):
            passed = app.operator(inputs=records, real_time=True, uid="passed")(selected)
        app.kafka_sink("out", input=passed, topic="out", **sink)
        assert ("out" in planned(app, spark).regions) is joined


def test_in_real_time_operators_join_that_are_written_the_same_way(spark: SparkSession) -> None:
    modes: tuple[tuple[bool, Delivery, bool], ...] = (
        (True, "exactly_once", True),
        (False, "exactly_once", False),
        (True, "at_least_once", False),
    )
    for real_time, delivery, joined in modes:
        app = sg.Application("passing")
        records = app.kafka_source("records", topic="in", schema="key string, n int")
        with app.parallel("work", key="key", max_width=4):
            passed = app.operator(inputs=records, real_time=True, uid="passed")(selected)
        more = app.operator(inputs=passed, uid="more", real_time=real_time, delivery=delivery)
        app.kafka_sink("out", input=more(selected), topic="out", delivery=delivery)
        assert set(planned(app, spark).regions) == ({"more", "out"} if joined else set())


def test_nothing_joins_over_the_end_of_a_consistent_region(spark: SparkSession) -> None:
    for end, joined in (("counts", False), ("out", True)):
        app, counts = application()
        app.kafka_sink("out", input=counts, topic="out")
        app.consistent_region("cuts", start="records", end=end, period_seconds=10)
        assert ("out" in planned(app, spark).regions) is joined
