"""Key columns of streams that meet in a region: equal keys need equal texts."""

from collections.abc import Mapping

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
    VarcharType,
)

import streamgraft as sg
from streamgraft._plan_checks import key_errors


def test_keys_in_a_collation_are_refused() -> None:
    """'a' and 'A' are one key there, and two texts."""
    (error,) = meeting({"orders": StringType("UTF8_LCASE"), "payments": StringType()})
    assert isinstance(error, sg.SchemaMismatch)
    assert error.problem == (
        "stream 'orders' enters region 'region' with the key column id in collation UTF8_LCASE,"
        " so equal keys would go to different channels"
    )


PLACE = StructType().add("lat", DoubleType()).add("lon", DoubleType())
NAMED = StructType().add("name", StringType("UTF8_LCASE"))


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (PLACE, "as struct<lat:double,lon:double>, in which 0.0 and -0.0 are equal"),
        (ArrayType(FloatType()), "as array<float>, in which 0.0 and -0.0 are equal"),
        (ArrayType(PLACE), "in which 0.0 and -0.0 are equal"),
        (MapType(StringType(), LongType()), "that has a map, whose entries have no order"),
        (StructType().add("m", MapType(StringType(), LongType())), "that has a map"),
        (ArrayType(NAMED), "in collation UTF8_LCASE"),
    ],
)
def test_keys_of_parts_with_several_texts_are_refused(kind: DataType, why: str) -> None:
    """Spark makes 0.0 of -0.0 at any depth before it groups."""
    (error,) = meeting({"orders": kind})
    assert isinstance(error, sg.SchemaMismatch)
    assert why in error.problem
    assert "so equal keys would go to different channels" in error.problem


@pytest.mark.parametrize(
    "kind",
    [
        DoubleType(),
        ArrayType(StringType()),
        StructType().add("day", DateType()).add("sums", ArrayType(DecimalType(10, 2))),
    ],
)
def test_other_parts_make_keys(kind: DataType) -> None:
    assert meeting({"orders": kind}) == []


def meeting(types: Mapping[str, DataType]) -> list[sg.ApplicationError]:
    """Return what is wrong if streams with keys of these types enter one region."""
    app = sg.Application("app")
    streams = [app.kafka_source(name, topic=name, schema="id int") for name in types]
    with app.parallel("region", key="id", max_width=4):

        @app.operator(inputs=streams)
        def joined(left: DataFrame, right: DataFrame) -> DataFrame:
            return left.join(right, "id")

    schemas = {name: StructType().add("id", kind) for name, kind in types.items()}
    return list(key_errors(app.graph, schemas))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (IntegerType(), DoubleType()),
        (IntegerType(), DecimalType(10, 2)),
        (DecimalType(10, 1), DecimalType(10, 2)),
        (FloatType(), DoubleType()),
        (DateType(), TimestampType()),
        (IntegerType(), StringType()),
    ],
)
def test_equal_keys_with_several_texts_are_refused(left: DataType, right: DataType) -> None:
    """Spark's join would compare 1 with 1.0, but they would be in different channels."""
    (error,) = meeting({"orders": left, "payments": right})
    assert isinstance(error, sg.SchemaMismatch)
    assert error.location
    assert error.location.file == __file__
    assert error.problem == (
        "streams 'orders' and 'payments' enter region 'region' with the key column id as"
        f" {left.simpleString()} and as {right.simpleString()}, so equal keys would go to"
        " different channels"
    )
    assert error.remedy == "cast it to one type in an operator before the region"


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (IntegerType(), LongType()),
        (LongType(), DecimalType(20, 0)),
        (DecimalType(10, 2), DecimalType(20, 2)),
        (StringType(), VarcharType(5)),
        (DateType(), DateType()),
    ],
)
def test_types_of_one_text_may_be_mixed(left: DataType, right: DataType) -> None:
    assert meeting({"orders": left, "payments": right}) == []
