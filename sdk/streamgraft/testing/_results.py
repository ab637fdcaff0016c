"""What operators made of given rows, and how it is compared."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import StructType

Rows: TypeAlias = Sequence[Mapping[str, Any]] | DataFrame
"""Rows as dictionaries from column to value, or as a frame."""


class Results:
    """The rows of streams, batch by batch; a plain run has one batch."""

    def __init__(self, batches: Mapping[str, Sequence[DataFrame]]) -> None:
        self._batches = batches

    def frame(self, stream: str, batch: int = 0) -> DataFrame:
        """Return the rows of a stream's batch. Raises ValueError if there is no such stream."""
        if stream not in self._batches:
            known = ", ".join(sorted(self._batches)) or "none"
            raise ValueError(f"there are no results of a stream {stream!r}: there are {known}")
        return self._batches[stream][batch]

    def rows(self, stream: str, batch: int = 0) -> list[dict[str, Any]]:
        """Return the rows of a stream's batch as dictionaries, in no particular order."""
        return [row.asDict(recursive=True) for row in self.frame(stream, batch).collect()]

    def batches(self, stream: str) -> int:
        """Return how many batches of a stream there were."""
        self.frame(stream)
        return len(self._batches[stream])

    def expect(self, stream: str, rows: Rows, batch: int = 0) -> None:
        """Raise AssertionError, with the difference, unless a stream's batch has these rows.

        Their order does not matter; floating-point numbers are compared to nine digits.
        """
        actual = self.frame(stream, batch)
        expected = frame_of(actual.sparkSession, rows, actual.schema)
        found, wanted = (Counter(map(_text, frame.collect())) for frame in (actual, expected))
        missing, surplus = (wanted - found).elements(), (found - wanted).elements()
        lines = [*(f"- {row}" for row in missing), *(f"+ {row}" for row in surplus)]
        if lines:
            differences = "\n".join(sorted(lines, key=lambda line: (line[2:], line)))
            raise AssertionError(f"stream {stream} (- expected, + found):\n{differences}")


def frame_of(spark: SparkSession, rows: Rows, schema: StructType) -> DataFrame:
    """Return rows as a frame of the schema. Raises ValueError for a column that it lacks."""
    if isinstance(rows, DataFrame):
        return rows
    for row in rows:
        if unknown := sorted(set(row) - set(schema.names)):
            raise ValueError(
                f"row {dict(row)} has the column {', '.join(unknown)}, which the stream lacks:"
                f" it has {', '.join(schema.names)}"
            )
    return spark.createDataFrame(
        [tuple(row.get(name) for name in schema.names) for row in rows], schema
    )


def _text(value: Any) -> str:
    """Return a value as text that is the same for equal values."""
    if isinstance(value, Row):
        return _text(value.asDict())
    if isinstance(value, Mapping):
        items = sorted((_text(key), _text(item)) for key, item in value.items())
        return "{" + ", ".join(f"{key}: {item}" for key, item in items) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_text, value)) + "]"
    return f"{value:.9g}" if isinstance(value, float) else repr(value)
