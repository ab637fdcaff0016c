"""How rows become records: the SQL text."""

from typing import Any

import pytest

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
