"""Run an application's operators on given rows: as one batch, or as a stream of micro-batches."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from streamgraft._analysis import analyze
from streamgraft._application import Application
from streamgraft._checks import check
from streamgraft._errors import raise_all
from streamgraft._graph import OperatorNode
from streamgraft.testing._results import Results, Rows, frame_of


class GraphTest:
    """An application whose operators run in this process; sources and sinks are left out.

    Rows are dictionaries from column to value (a column that is missing is null), or a DataFrame.
    Streams are named as in the application: a source or an operator makes the stream of its name.
    """

    def __init__(self, application: Application, spark: SparkSession) -> None:
        self._application = application
        self._spark = spark

    def bind(self, parameters: Mapping[str, str]) -> None:
        """Set submission-time values. Raises UnknownParameter."""
        self._application.bind(parameters)

    @cached_property
    def schemas(self) -> Mapping[str, StructType]:
        """The schema of each stream. Raises ApplicationError if the application can't be built."""
        graph = self._application.graph
        raise_all(check(graph))
        analysis = analyze(graph, self._spark, Path(graph.location.file).parent)
        raise_all(analysis.errors)
        return analysis.schemas

    def run(self, **streams: Rows) -> Results:
        """Run everything behind the given streams on batch frames; stateful operators see all rows.

        A stream's hyphens are underscores here. Other inputs are empty. Raises ValueError for a
        stream or a column that the application does not have.
        """
        given = {
            name: frame_of(self._spark, rows, self._schema(name))
            for name, rows in _hyphenated(streams).items()
        }
        return Results({name: [frame] for name, frame in self._frames(given).items()})

    def stream(self, *streams: str, **batches: Sequence[Rows]) -> Results:
        """Run micro-batch after micro-batch through Spark's streaming engine, with state.

        `batches`: for each input the rows of each batch. `streams`: those whose rows are wanted;
        a query is run for each. Slower than `run`: about a second a query and batch.
        """
        given = _hyphenated(batches)
        with TemporaryDirectory(prefix="streamgraft-test-") as folder:
            inputs = {
                name: self._played(Path(folder, "inputs", name), rows, self._schema(name))
                for name, rows in given.items()
            }
            frames = self._frames(inputs)
            collected = {
                name: self._collected(name, frames, Path(folder, "checkpoints", name))
                for name in streams
            }
        return Results(collected)

    def _frames(self, given: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
        frames: dict[str, DataFrame] = dict(given)
        for operator in self._application.graph.upstream_first():
            inputs = [self._frame(frames, name) for name in operator.inputs]
            if operator.kind == "function" and operator.name not in given:
                assert operator.function is not None
                frames[operator.name] = operator.function(*inputs)
            for part in operator.split:
                if part.stream not in given:
                    frames[part.stream] = inputs[0].where(F.expr(part.condition))
        return frames

    def _frame(self, frames: dict[str, DataFrame], stream: str) -> DataFrame:
        if stream not in frames:
            frames[stream] = frame_of(self._spark, [], self._schema(stream))
        return frames[stream]

    def _schema(self, stream: str) -> StructType:
        if stream not in self.schemas:
            known = ", ".join(sorted(self.schemas))
            raise ValueError(f"the application has no stream {stream!r}: it has {known}")
        return self.schemas[stream]

    def _played(self, folder: Path, batches: Sequence[Rows], schema: StructType) -> DataFrame:
        """Return a stream whose batches have these rows."""
        for number, rows in enumerate(batches):
            frame = frame_of(self._spark, rows, schema).coalesce(1)
            frame.write.parquet(str(folder / f"{number:06}"))
        reader = self._spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return reader.parquet(f"{folder}/*")

    def _collected(
        self, stream: str, frames: Mapping[str, DataFrame], checkpoint: Path
    ) -> list[DataFrame]:
        self._schema(stream)  # an unknown one has a better message from there
        batches: list[list[Row]] = []
        frame = frames[stream]

        def collect(rows: DataFrame, _: int) -> None:
            batches.append(rows.collect())

        writer = frame.writeStream.foreachBatch(collect).outputMode(self._output_mode(stream))
        writer = writer.option("checkpointLocation", str(checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination()
        return [self._spark.createDataFrame(rows, frame.schema) for rows in batches]

    def _output_mode(self, stream: str) -> str:
        modes = {operator.output_mode for operator in self._upstream(stream)}
        return "update" if "update" in modes else "append"

    def _upstream(self, stream: str) -> Iterator[OperatorNode]:
        operator = self._application.graph.producers()[stream]
        yield operator
        for name in operator.inputs:
            yield from self._upstream(name)


def _hyphenated(streams: Mapping[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "-"): rows for name, rows in streams.items()}
