"""What operators behind select does not change a state's schema, on real Spark."""

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamgraft._graph import OutputMode
from streamgraft._schemas import empty_stream, parse
from streamgraft._state_schemas import state_tables
from streamgraft_pe_runtime.kept_columns import all_kept

pytestmark = pytest.mark.integration

SCHEMA = "user string, millis bigint, `od.d` bigint, time timestamp"
Make = Callable[[DataFrame], DataFrame]


def counted(rows: DataFrame) -> DataFrame:
    return rows.groupBy("user").agg(
        F.sum("millis").alias("total"), F.count("*").alias("n"), F.max("`od.d`").alias("o.d")
    )


def joined(rows: DataFrame) -> DataFrame:
    timed = rows.withWatermark("time", "1 minute")
    return timed.join(timed.select("user", F.col("millis").alias("other")), "user")


def listed(rows: DataFrame) -> DataFrame:
    mapped = F.create_map(F.lit("a"), F.max("millis"))
    return rows.groupBy("user").agg(mapped.alias("m"), F.struct(F.count("*")).alias("s"))


@pytest.mark.parametrize(
    ("make", "few", "mode"),
    [
        (counted, ["user", "n"], "update"),
        (joined, ["user", "millis"], "append"),
        (listed, ["user"], "update"),
    ],
)
def test_state_is_the_same_whatever_is_selected(
    spark: SparkSession, make: Make, few: list[str], mode: OutputMode
) -> None:
    rows = empty_stream(spark, parse(spark, SCHEMA))
    alone = state_tables(make(rows), mode)
    assert state_tables(make(rows).select(*few), mode) != alone  # what Spark does by itself
    assert state_tables(all_kept(make(rows)).select(*few), mode) == alone
    assert state_tables(all_kept(make(rows)), mode) == alone


def test_every_row_stays(spark: SparkSession) -> None:
    rows = spark.createDataFrame(
        [(number, None if number % 3 else str(number), {"a": number}) for number in range(100)],
        "number int, text string, map map<string, int>",
    )
    assert all_kept(rows).count() == 100
    assert all_kept(rows.select()).columns == []
