"""How rows become records: the SQL text."""

from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from streamgraft_common.pe_metadata import OutputPort
from streamgraft_pe_runtime import expressions


def port(**changes: object) -> OutputPort:
    """Return an output port."""
    base = OutputPort(
        port=0, stream="s", topic="t", partitions=2, bootstrap_servers="b", operator="o"
    )
    return base.model_copy(update=changes)


def test_one_key_column_is_its_text() -> None:
    """Between PEs a null key would leave its key group, so it becomes the empty text."""
    inside = expressions.key_expression(["a"], {}, external=False)
    assert inside == "cast(coalesce(cast(`a` as string), '') as binary)"
    assert expressions.key_expression(["a"], {}, external=True) == (
        "cast(cast(`a` as string) as binary)"
    )


def test_several_key_columns_are_a_json_array() -> None:
    """In the order in which they are named."""
    assert expressions.key_expression(["b", "a"], {}, external=False) == (
        "cast(to_json(array(cast(`b` as string), cast(`a` as string))) as binary)"
    )


def test_zeros_of_both_signs_are_one_key() -> None:
    """Between PEs; an outside topic gets what is there."""
    assert expressions.key_expression(["a"], {"a": "float"}, external=False) == (
        "cast(coalesce(cast(`a` + cast(0 as float) as string), '') as binary)"
    )
    assert expressions.key_expression(["a"], {"a": "float"}, external=True) == (
        "cast(cast(`a` as string) as binary)"
    )


def test_names_are_quoted() -> None:
    """Column names may hold anything."""
    assert expressions.quoted("a`b c") == "`a``b c`"


@pytest.mark.parametrize(
    ("changes", "partition"),
    [({"keep_partition": True}, "0"), ({}, "-2"), ({"external": True, "partitions": None}, "null")],
)
def test_partition_is_the_shard_or_by_the_key(changes: dict[str, Any], partition: str) -> None:
    """Key groups stay together behind a region; elsewhere between PEs it is one of those that are
    read, and of a user's topic what Kafka's partitioner says."""
    record = expressions.record_expression(port(**changes), 0, None, {})
    assert f"cast({partition} as int) as partition" in record


@pytest.mark.parametrize(
    ("shards", "own"),
    [([3], "3"), ([3, 5], "element_at(array(3, 5), spark_partition_id() + 1)")],
)
def test_shard_is_known_by_sparks_partition(shards: list[int], own: str) -> None:
    """A query over several shards finds it when it runs."""
    assert expressions.partition_expression(shards) == f"if(partition = 0, {own}, partition)"


def test_raw_streams_pass_their_own_columns() -> None:
    """Value as it is; key and headers only if the stream has them."""
    record = expressions.record_expression(port(external=True), 0, ["value", "headers"], {})
    assert "cast(`value` as binary) as value" in record
    assert "cast(null as binary) as key" in record
    assert "cast(`headers` as" in record


def test_conditions_choose_among_the_records_of_a_row() -> None:
    """Records whose condition is false, or null, are dropped."""
    text = expressions.exploded([("A", None), ("B", "x > 1")])
    assert text == (
        "explode(filter(array(A, case when x > 1\n then B end), record -> record is not null))"
    )


@pytest.mark.integration
@pytest.mark.parametrize(
    "conf",
    [
        {},
        {"spark.sql.ansi.enabled": "true", "spark.sql.ansi.doubleQuotedIdentifiers": "true"},
        {"spark.sql.ansi.enabled": "true", "spark.sql.ansi.enforceReservedKeywords": "true"},
        {"spark.sql.parser.escapedStringLiterals": "true"},
        {"spark.sql.legacy.consecutiveStringLiterals.enabled": "true"},
        {"spark.sql.legacy.timeParserPolicy": "EXCEPTION"},
    ],
)
def test_values_are_the_same_whatever_texts_are_in_sql(
    session: SparkSession, conf: dict[str, str]
) -> None:
    """Settings of the application are those of its queries, too."""
    asked = session.newSession()
    for name, value in conf.items():
        asked.conf.set(name, value)
    moment = "timestamp'2013-01-02 03:04:05.000006+00:00'"
    rows = asked.range(1).selectExpr(f"{moment} as t", "timestamp_ntz'2013-01-02 03:04:05' as n")
    record = expressions.record_expression(port(key=["n"]), 0, None, {})
    (row,) = (
        rows.select(F.expr(record).alias("r")).selectExpr("cast(r.value as string) v").collect()
    )
    assert row.v == ('{"t":"2013-01-02T03:04:05.000006Z","n":"2013-01-02T03:04:05.000000"}')
