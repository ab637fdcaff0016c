"""Functions that give other columns than when the bundle was built."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)
from tests.pe_runtime.one_driver import Job

import streamgraft as sg
from streamgraft_local import Cluster
from streamgraft_pe_runtime.protocol.failures import explained
from streamgraft_pe_runtime.stream_columns import OtherColumns, check_columns


@pytest.mark.integration
def test_other_columns_than_in_the_build_are_refused(
    session: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    """By a parameter that was given to the job alone: who reads them would find nulls."""
    app = sg.Application("chosen")
    by = app.parameter("by", default="zone")
    source = app.kafka_source("visits", topic="visits", schema="zone string, page string, n int")

    @app.operator(inputs=source)
    def chosen(rows: DataFrame) -> DataFrame:
        return rows.select(by.value, "n")

    with app.parallel("by-n", key=["n"], max_width=2):

        @app.operator(inputs=chosen)
        def passed(rows: DataFrame) -> DataFrame:
            return rows

    app.kafka_sink("out", input=passed, topic="visits-out", partitions=1)
    job = Job(app, session, cluster, tmp_path, rehearsed=True)
    app.bind({"by": "page"})
    with pytest.raises(OtherColumns) as error:
        job.plan(job.pe_of("chosen"))
    said = explained(str(error.value))
    assert said.reason == "OtherColumns"
    assert said.message.startswith("chosen gives other columns")
    assert "(missing: zone string; there are: page string)" in said.message
    assert said.message.endswith("give a source the schema that it has")
    app.bind({"by": "zone"})
    job.plan(job.pe_of("chosen"))


def _schema(*columns: str) -> StructType:
    kinds: dict[str, DataType] = {"int": IntegerType(), "bigint": LongType(), "float": FloatType()}
    kinds |= {"double": DoubleType(), "string": StringType()}
    named = [column.split() for column in columns]
    return StructType([StructField(name, kinds[kind]) for name, kind in named])


@pytest.mark.parametrize(
    ("told", "found", "fits"),
    [
        (["a int", "b string"], ["b string", "a int"], True),
        (["a int"], ["a int", "b string"], True),
        (["a bigint"], ["a int"], True),
        (["a double"], ["a float"], True),
        (["a int"], ["a bigint"], False),
        (["a bigint"], ["a double"], False),
        (["a string"], ["A string"], False),
        (["a string"], [], False),
    ],
)
def test_which_columns_do(told: list[str], found: list[str], fits: bool) -> None:
    """Others read them by name, with the type that they were told."""
    if fits:
        check_columns("work", _schema(*told), _schema(*found))
        return
    with pytest.raises(OtherColumns):
        check_columns("work", _schema(*told), _schema(*found))
