"""Which plans Spark runs over several shards with their rows apart, asked of Spark itself."""

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamgraft_pe_runtime.alignment import obstacle

pytestmark = pytest.mark.integration


def rows(session: SparkSession) -> DataFrame:
    """Return a stream of a topic; nobody asks for the topic."""
    reader = session.readStream.format("kafka").option("kafka.bootstrap.servers", "localhost:1")
    records = reader.option("assign", '{"t": [1, 2]}').load().coalesce(1)
    return records.selectExpr("cast(key as string) as key", "offset as n")


def static(session: SparkSession) -> DataFrame:
    """Return a table."""
    return session.range(9).selectExpr("cast(id as string) as key", "id as m")


@pytest.mark.parametrize(
    "operator",
    [
        lambda rows, table: rows.where("n > 1").select("key", F.explode(F.array("n", "n"))),
        lambda rows, table: rows.withColumn("m", F.udf(lambda n: n, "long")("n")),
        lambda rows, table: rows.join(F.broadcast(table), "key"),
        lambda rows, table: rows.where("n > 1").unionAll(rows.where("n < 1")),
        lambda rows, table: rows.repartition(4),
        lambda rows, table: rows.dropDuplicates(["key"]),
        lambda rows, table: rows.dropDuplicates(["n"]).groupBy("key").count(),
        lambda rows, table: rows.groupBy("key").count().unionAll(rows.select("key", "n")),
    ],
    ids=[
        "columns",
        "Python",
        "broadcast join",
        "union",
        "repartition",
        "distinct",
        "several states",
        "counted",
    ],
)
def test_rows_stay_apart(
    session: SparkSession, operator: Callable[[DataFrame, DataFrame], DataFrame]
) -> None:
    assert obstacle(operator(rows(session), static(session)), 2) is None


@pytest.mark.parametrize(
    ("operator", "why"),
    [
        (
            lambda rows, table: rows.hint("merge").join(table.hint("merge"), "key"),
            "it has SortMergeJoin, which may mix the rows of several partitions",
        ),
        (
            lambda rows, table: rows.join(rows.select("key"), "key"),
            "it keeps state (StreamingSymmetricHashJoin)",
        ),
        (
            lambda rows, table: (
                rows.withColumn("t", F.timestamp_seconds("n"))
                .withWatermark("t", "1 second")
                .groupBy(F.window("t", "1 second"))
                .count()
            ),
            "it has a watermark",
        ),
    ],
    ids=["sorted join", "joined streams", "watermark"],
)
def test_others_are_refused(
    session: SparkSession, operator: Callable[[DataFrame, DataFrame], DataFrame], why: str
) -> None:
    assert obstacle(operator(rows(session), static(session)), 2) == why
    # What is asked for one plan holds for no other.
    assert session.conf.get("spark.streamgraft.alignShards") == "false"


def test_state_that_is_not_known_of(session: SparkSession) -> None:
    """It would be kept by a store that knows of no shards."""
    why = "it keeps state that its build did not see (StreamingDeduplicate)"
    assert obstacle(rows(session).dropDuplicates(["key"])) == why
