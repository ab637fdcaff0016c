"""Numbers of JSON that Spark's decoder takes for others.

A tinyint wraps from 128 on. A number in a timestamp column counts seconds: milliseconds, which much
software writes, come out as some year of which neither Python nor SQL's texts know.
"""

from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    MapType,
    ShortType,
    StructField,
    StructType,
    TimestampType,
)

_FIRST, _LAST = "timestamp'0001-01-01T00:00:00Z'", "timestamp'9999-12-31T23:59:59.999999Z'"

_BEYOND = (
    "a value out of its type's range; a timestamp's is the years 1 to 9999, numbers are seconds"
)


def decoded_as(kind: DataType) -> DataType:
    """Return the type with which a column is to be decoded, so that nothing wraps."""
    if isinstance(kind, ByteType):
        return ShortType()
    if isinstance(kind, StructType):
        fields = [StructField(item.name, decoded_as(item.dataType)) for item in kind]
        return StructType(fields)
    if isinstance(kind, ArrayType):
        return ArrayType(decoded_as(kind.elementType))
    if isinstance(kind, MapType):
        return MapType(kind.keyType, decoded_as(kind.valueType))
    return kind


def problem(row: Column, schema: StructType) -> Column | None:
    """Return what is wrong with a decoded row, null if nothing is; None if nothing can be."""
    found = [
        F.when(
            _beyond(row.getField(item.name), item.dataType),
            F.lit(f"'{item.name}' has {_BEYOND}"),
        )
        for item in schema
        if _ranged(item.dataType)
    ]
    return F.coalesce(*found) if found else None


def _ranged(kind: DataType) -> bool:
    """Return whether Spark takes numbers for values of a type that are others."""
    if isinstance(kind, StructType):
        return any(_ranged(item.dataType) for item in kind)
    if isinstance(kind, ArrayType):
        return _ranged(kind.elementType)
    if isinstance(kind, MapType):
        return _ranged(kind.valueType)
    return isinstance(kind, (ByteType, TimestampType))


def _beyond(value: Column, kind: DataType) -> Column:
    """Return whether a value of such a type is out of its range, or has one within; null is not."""
    if isinstance(kind, StructType):
        inner = [item for item in kind if _ranged(item.dataType)]
        found = [_beyond(value.getField(item.name), item.dataType) for item in inner]
        return reduce(Column.__or__, found)
    if isinstance(kind, ArrayType):
        return F.exists(value, lambda item: _beyond(item, kind.elementType))
    if isinstance(kind, MapType):
        return F.exists(F.map_values(value), lambda item: _beyond(item, kind.valueType))
    if isinstance(kind, ByteType):
        return ~value.between(-128, 127)
    return ~value.between(F.expr(_FIRST), F.expr(_LAST))
