"""Spark schemas as streams have them: parsed, made nullable, and as empty streaming frames."""

import json
import re
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

KAFKA_COLUMNS = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp,"
    " headers array<struct<key: string, value: binary>>"
)
"""Columns of a source of format raw."""


INPUT = "streamgraft.input"
"""Option of the source behind an empty stream, by which it is told from others in a plan."""


def parse(spark: SparkSession, schema: str | StructType) -> StructType:
    """Return the schema, nullable, from DDL text (columns, as in CREATE TABLE) if need be.

    Raises PySparkException.
    """
    return nullable(written(spark, schema))


def written(spark: SparkSession, schema: str | StructType) -> StructType:
    """Return the schema as it is written, with columns that are NOT NULL. Raises PySparkException.

    PySpark's own parser would also take a bare type for a column.
    """
    if isinstance(schema, str):
        jvm: Any = spark._jvm
        schema = StructType.fromJson(
            json.loads(jvm.org.apache.spark.sql.types.StructType.fromDDL(schema).json())
        )
    return schema


def nullable(schema: StructType) -> StructType:
    """Return the schema with every part nullable and without metadata.

    A stream between PEs is JSON: any field may be absent there, and a watermark doesn't cross.
    """
    return StructType(
        [StructField(field.name, _nullable(field.dataType), True) for field in schema.fields]
    )


def _nullable(data_type: DataType) -> DataType:
    if isinstance(data_type, StructType):
        return nullable(data_type)
    if isinstance(data_type, ArrayType):
        return ArrayType(_nullable(data_type.elementType), True)
    if isinstance(data_type, MapType):
        return MapType(_nullable(data_type.keyType), _nullable(data_type.valueType), True)
    return data_type


def empty_stream(spark: SparkSession, schema: StructType) -> DataFrame:
    """Return a streaming frame of the schema that never has rows.

    Spark analyses what is done with it as it would analyse the real stream.
    """
    columns = [F.lit(None).cast(field.dataType).alias(field.name) for field in schema.fields]
    nothing = spark.readStream.format("rate").option(INPUT, "true").load()
    return nothing.select(*columns).where(F.lit(False))


def reason(error: BaseException) -> str:
    """Return what an exception says in one line; of Spark's own, without plan and SQLSTATE."""
    if not isinstance(error, PySparkException):
        return f"{type(error).__name__}: {error}"
    first = str(error).strip().partition("\n")[0]
    return re.sub(r"\s*SQLSTATE: \w+.*$", "", first)
