"""DataFrames as functions of operators take them, in the build, in tests and in a PE."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from streamgraft_common.columns import MALFORMED


def row_of(text: Column, schema: StructType | str) -> Column:
    """Return the struct of a stream's columns that JSON text has."""
    return F.from_json(text, schema, {"columnNameOfCorruptRecord": MALFORMED})


def told_apart(frames: Sequence[DataFrame]) -> list[DataFrame]:
    """Return the frames of a function, with columns of their own for each if there are several.

    Spark knows a column by a number, which frames that are made of one stream have in common: it
    could not tell of which of them a condition of their join speaks.
    """
    if len(frames) < 2:
        return list(frames)
    return [frame.toDF(*frame.columns) for frame in frames]
