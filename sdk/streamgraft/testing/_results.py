"""What operators made of given rows, and how it is compared."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from streamgraft.testing._compare import difference

Rows: TypeAlias = Iterable[Mapping[str, Any]] | DataFrame
"""Rows as dictionaries from column to value, or as a frame."""


class Results:
    """The rows of streams, batch by batch; a plain run has one batch."""

    def __init__(self, batches: Mapping[str, Sequence[DataFrame]]) -> None:
        self._batches = batches

    def frame(self, stream: str, batch: int = 0) -> DataFrame:
        """Return the rows of a stream's batch. Raises ValueError if there is no such stream."""
        return self._of(stream)[batch]

    def rows(self, stream: str, batch: int = 0) -> list[dict[str, Any]]:
        """Return the rows of a stream's batch as dictionaries, in no particular order."""
        return [row.asDict(recursive=True) for row in self.frame(stream, batch).collect()]

    def batches(self, stream: str) -> int:
        """Return how many batches of a stream there were."""
        return len(self._of(stream))

    def expect(self, stream: str, rows: Rows, batch: int = 0) -> None:
        """Raise AssertionError, with the difference, unless a stream's batch has these rows.

        Their order does not matter, and doubles that are no whole numbers may differ by 1e-12 of
        their value. Raises ValueError for a column that the stream lacks, and for a frame without
        one of its columns.
        """
        actual = self.frame(stream, batch)
        if isinstance(rows, DataFrame):
            expected = _in_order(rows, actual.schema)
        else:
            expected = frame_of(actual.sparkSession, rows, actual.schema)
        if lines := difference(actual.collect(), expected.collect()):
            differences = "\n".join(lines)
            raise AssertionError(f"stream {stream} (- expected, + found):\n{differences}")

    def _of(self, stream: str) -> Sequence[DataFrame]:
        if stream not in self._batches:
            known = ", ".join(sorted(self._batches)) or "none"
            raise ValueError(f"there are no results of a stream {stream!r}: there are {known}")
        return self._batches[stream]


def frame_of(spark: SparkSession, rows: Rows, schema: StructType) -> DataFrame:
    """Return rows as a frame of the schema.

    Raises ValueError for a column that the schema lacks, and for a frame without one of its columns
    or with another type.
    """
    if isinstance(rows, DataFrame):
        return _of_types(_in_order(rows, schema), schema)
    rows = list(rows)  # they are gone through twice, and an iterator has them once
    for row in rows:
        if unknown := sorted(set(row) - set(schema.names)):
            raise ValueError(
                f"row {dict(row)} has the column {', '.join(unknown)}, which the stream lacks:"
                f" it has {', '.join(schema.names)}"
            )
    return spark.createDataFrame(
        [tuple(row.get(name) for name in schema.names) for row in rows], schema
    )


def _in_order(frame: DataFrame, schema: StructType) -> DataFrame:
    """Return a frame with its columns as in the schema. Raises ValueError for other columns."""
    given, wanted = Counter(frame.columns), Counter(schema.names)
    parts = {"lacks": wanted - given, "has besides": given - wanted}
    if wrong := [f"{what} {', '.join(sorted(names))}" for what, names in parts.items() if names]:
        known = ", ".join(schema.names)
        raise ValueError(f"the frame {' and '.join(wrong)}: the stream's columns are {known}")
    return frame.select(*(f"`{name.replace('`', '``')}`" for name in schema.names))


def _of_types(frame: DataFrame, schema: StructType) -> DataFrame:
    """Return a frame as it is. Raises ValueError if a column has another type than in the schema.

    What may be null does not matter: few frames say so as a source does.
    """
    for given, wanted in zip(frame.schema, schema, strict=True):
        found, needed = given.dataType.simpleString(), wanted.dataType.simpleString()
        if found != needed:
            raise ValueError(
                f"column {given.name} of the frame has type {found}, that of the stream {needed}"
            )
    return frame
