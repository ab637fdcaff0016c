"""Run an application's operators on given rows: as one batch, or as a stream of micro-batches."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from streamgraft._analysis import Analysis, analyze
from streamgraft._application import Application
from streamgraft._checks import check
from streamgraft._errors import raise_all
from streamgraft._fusion_groups import share_a_watermark
from streamgraft._graph import OperatorNode
from streamgraft.testing._results import Results, Rows, frame_of
from streamgraft_common.frames import told_apart

_EMPTY_BATCHES = 5
"""Batches that a query may run behind the given ones: one or two close windows. Operators with
processing-time timers have Spark run another one for ever."""
_POLL_SECONDS = 1
_PAUSE_SECONDS = 0.05


class GraphTest:
    """An application whose operators run in this process; sources and sinks are left out.

    Rows are dictionaries from column to value (a column that is missing is null), or a DataFrame
    with the stream's columns and types.
    Streams are named as in the application: a source or an operator makes the stream of its name.
    """

    def __init__(self, application: Application, spark: SparkSession) -> None:
        self._application = application
        self._spark = spark

    def bind(self, parameters: Mapping[str, str]) -> None:
        """Set submission-time values. Raises UnknownParameter."""
        self._application.bind(parameters)

    @property
    def schemas(self) -> Mapping[str, StructType]:
        """The schema of each stream. Raises ApplicationError if the application can't be built."""
        return self._analysis.schemas

    @cached_property
    def _analysis(self) -> Analysis:
        graph = self._application.graph
        raise_all(check(graph))
        analysis = analyze(graph, self._spark, Path(graph.location.file).parent)
        raise_all(analysis.errors)
        return analysis

    def run(self, **streams: Rows) -> Results:
        """Run everything behind the given streams on batch frames; stateful operators see all rows.

        A stream's hyphens are underscores here. Other inputs are empty. Raises ValueError for a
        stream or a column that the application does not have, and for a frame of other types.
        """

        def frame(name: str, rows: Rows) -> DataFrame:
            return frame_of(self._spark, rows, self._schema(name))

        given = {name: frame(name, rows) for name, rows in _hyphenated(streams).items()}
        frames = self._frames(given, lambda name: frame(name, []))
        return Results({name: [rows] for name, rows in frames.items()})

    def stream(self, *streams: str, **batches: Iterable[Rows]) -> Results:
        """Run micro-batch after micro-batch through Spark's streaming engine, with state.

        `batches`: for each input the rows of each batch. `streams`: those whose rows are wanted;
        a query is run for each. Slower than `run`: about a second a query and batch. Behind the
        given batches there may be more without input: few, if time goes by what is given, and five
        if operators have timers of processing time.
        Raises ValueError as `run` does, and for operators that no job runs in one query.
        """
        given = {name: list(rows) for name, rows in _hyphenated(batches).items()}
        modes = {name: self._output_mode(name, given.keys()) for name in streams}
        most = max(map(len, given.values()), default=0) + _EMPTY_BATCHES
        with TemporaryDirectory(prefix="streamgraft-test-") as folder:

            def played(name: str, rows: Sequence[Rows]) -> DataFrame:
                return self._played(Path(folder, "inputs", name), rows, self._schema(name))

            inputs = {name: played(name, rows) for name, rows in given.items()}
            frames = self._frames(inputs, lambda name: played(name, []))
            collected = {
                name: self._collected(frames[name], mode, most, Path(folder, "checkpoints", name))
                for name, mode in modes.items()
            }
        return Results(collected)

    def _frames(
        self, given: Mapping[str, DataFrame], empty: Callable[[str], DataFrame]
    ) -> dict[str, DataFrame]:
        frames: dict[str, DataFrame] = dict(given)
        for operator in self._application.graph.upstream_first():
            for name in operator.inputs:
                if name not in frames:
                    frames[name] = empty(name)
            inputs = [frames[name] for name in operator.inputs]
            if operator.kind == "function" and operator.name not in given:
                assert operator.function is not None
                frames[operator.name] = operator.function(*told_apart(inputs))
            for part in operator.split:
                if part.stream not in given:
                    frames[part.stream] = inputs[0].where(F.expr(part.condition))
        return frames

    def _schema(self, stream: str) -> StructType:
        if stream not in self.schemas:
            known = ", ".join(sorted(self.schemas))
            raise ValueError(f"the application has no stream {stream!r}: it has {known}")
        return self.schemas[stream]

    def _played(self, folder: Path, batches: Sequence[Rows], schema: StructType) -> DataFrame:
        """Return a stream whose batches have these rows."""
        folder.mkdir(parents=True)
        for number, rows in enumerate(batches):
            frame = frame_of(self._spark, rows, schema).coalesce(1)
            frame.write.parquet(str(folder / f"{number:06}"))
        reader = self._spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return reader.parquet(f"{folder}/*")

    def _collected(
        self, frame: DataFrame, mode: str, most: int, checkpoint: Path
    ) -> list[DataFrame]:
        batches: list[list[Row]] = []

        def collect(rows: DataFrame, _: int) -> None:
            batches.append(rows.collect())
            # Stopped while it waits for this function, the query ends in order; stopped while this
            # function waits for Spark, it ends with stack traces.
            while len(batches) == most and query.isActive:
                time.sleep(_PAUSE_SECONDS)

        writer = frame.writeStream.foreachBatch(collect).outputMode(mode)
        writer = writer.option("checkpointLocation", str(checkpoint))
        query = writer.trigger(availableNow=True).start()
        while not query.awaitTermination(_POLL_SECONDS) and len(batches) < most:
            pass
        query.stop()
        return [self._spark.createDataFrame(rows, frame.schema) for rows in batches]

    def _output_mode(self, stream: str, given: Set[str]) -> str:
        """Return the output mode of the processing elements that make a stream from the given.

        The build puts operators whose results depend on it where all are in mode append; one query
        does the same only if no other needs update.
        """
        self._schema(stream)  # an unknown one has a better message from there
        found = {item.name: item for item in self._upstream(stream, given)}
        updating = {name for name, item in found.items() if item.output_mode == "update"}
        appending = sorted(found.keys() & self._analysis.append_only)
        if appending and (torn := sorted(updating & self._analysis.stateful)):
            raise ValueError(
                f"a job runs {torn[0]!r} and {appending[0]!r} apart, in output modes update and"
                f" append: give a stream between them to test {stream!r}"
            )
        watermarked, stateful = self._analysis.watermarked, self._analysis.stateful
        if share_a_watermark(found.keys(), watermarked, stateful):
            apart = sorted(found.keys() & (watermarked | stateful))
            raise ValueError(
                f"a job runs {' and '.join(map(repr, apart))} apart, since a watermark holds only"
                f" within its operator: give a stream between them to test {stream!r}"
            )
        return "update" if updating and not appending else "append"

    def _upstream(self, stream: str, given: Set[str]) -> Iterator[OperatorNode]:
        if stream in given:
            return
        operator = self._application.graph.producers()[stream]
        yield operator
        for name in operator.inputs:
            yield from self._upstream(name, given)


def _hyphenated(streams: Mapping[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "-"): rows for name, rows in streams.items()}
