"""What a build finds out of state is what Spark would refuse, and more."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from streamgraft._schemas import empty_stream, parse
from streamgraft._state_schemas import plan_first_batch, state_tables
from streamgraft_common.adl import StateTable
from streamgraft_common.resources import SavedStage
from streamgraft_common.state_tables import remade, retyped

pytestmark = pytest.mark.integration

Make = Callable[[DataFrame], DataFrame]
SCHEMA = "user string, page string, millis bigint, time timestamp"


def stage(tables: list[StateTable]) -> SavedStage:
    return SavedStage(
        name="totals",
        shards=1,
        operators=["totals"],
        stateful=["totals"],
        tables={"totals": tables},
    )


def summed(rows: DataFrame) -> DataFrame:
    return rows.groupBy("user").agg(F.sum("millis").alias("total"))


CHANGES: dict[str, tuple[Make, str, str]] = {
    # What it becomes, what an edit in place reports, and what Spark would say at the start.
    "other alias": (lambda rows: rows.groupBy("user").agg(F.sum("millis").alias("t")), "", ""),
    "filter": (lambda rows: summed(rows.where("millis > 3")), "", ""),
    "aggregation": (lambda rows: rows.groupBy("user").agg(F.max("millis")), "max bigint", ""),
    "one more": (
        lambda rows: rows.groupBy("user").agg(F.sum("millis"), F.count("*")),
        "would hold (sum bigint, count bigint)",
        "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE",
    ),
    "key": (lambda rows: rows.groupBy("page").agg(F.sum("millis")), "by (page string)", ""),
    "longer key": (
        lambda rows: rows.groupBy("user", "page").agg(F.sum("millis")),
        "by (user string, page string)",
        "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE",
    ),
    "schema": (
        lambda rows: summed(rows.withColumn("millis", F.col("millis").cast("double"))),
        "would hold (sum double)",
        "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE",
    ),
    "other operator": (lambda rows: rows.dropDuplicates(["user"]), "would of dedupe", ""),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_state_is_seen_before_spark_refuses_it(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    changed, reported, refused = CHANGES[name]
    rows = empty_stream(spark, parse(spark, SCHEMA))
    old = stage(state_tables(summed(rows), "update"))
    new = stage(state_tables(changed(rows), "update"))
    operator, why = remade(old, new)
    assert operator == ("totals" if reported else "")
    assert reported in why
    plan_first_batch(summed(rows), "update", tmp_path)
    if refused:
        assert retyped(old, new)
        with pytest.raises(PySparkException, match=refused):
            plan_first_batch(changed(rows), "update", tmp_path)
    elif name != "other operator":
        assert not retyped(old, new)
        plan_first_batch(changed(rows), "update", tmp_path)


class Kept(StatefulProcessor):
    """Keeps values in state variables (name -> schema)."""

    def __init__(self, variables: dict[str, str]) -> None:
        self._variables = variables

    def init(self, handle: StatefulProcessorHandle) -> None:
        for name, schema in self._variables.items():
            handle.getValueState(name, schema)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
        yield pd.DataFrame({"user": [key[0]]})

    def close(self) -> None:
        """Nothing is open."""


VARIABLES: dict[str, tuple[dict[str, str], str]] = {
    "same": ({"seen": "n int"}, ""),
    "more": ({"seen": "n int", "last": "page string"}, ""),
    "less": ({"last": "page string"}, "and would of none"),
    "other type": ({"seen": "n string"}, "would hold (n string)"),
    "other name": ({"seen": "m int"}, "would hold (m int)"),
}


@pytest.mark.parametrize("name", VARIABLES)
def test_state_variables_of_a_processor_are_tables(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    """Spark takes more of them; what it would refuse at the start is seen before."""
    variables, reported = VARIABLES[name]
    rows = empty_stream(spark, parse(spark, SCHEMA)).groupBy("user")

    def kept(variables: dict[str, str]) -> DataFrame:
        return rows.transformWithStateInPandas(Kept(variables), "user string", "update", "none")

    before, now = kept({"seen": "n int"}), kept(variables)
    old, new = (stage(state_tables(frame, "update")) for frame in (before, now))
    assert reported in remade(old, new)[1]
    assert bool(remade(old, new)[0]) == bool(reported)
    plan_first_batch(before, "update", tmp_path)
    if name == "other type":
        with pytest.raises(PySparkException, match="STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE"):
            plan_first_batch(now, "update", tmp_path)
    else:
        plan_first_batch(now, "update", tmp_path)


def test_a_join_has_tables_of_both_sides(spark: SparkSession) -> None:
    rows = empty_stream(spark, parse(spark, SCHEMA)).withWatermark("time", "1 minute")
    joined = rows.alias("a").join(rows.alias("b"), F.expr("a.user = b.user"))
    names = [table.name for table in state_tables(joined, "append")]
    assert names == [
        "left-keyToNumValues",
        "left-keyWithIndexToValue",
        "right-keyToNumValues",
        "right-keyWithIndexToValue",
    ]
