"""An application's PEs one after the other on real Spark, with files in the place of topics.

What one writes is what the next one reads, so hops are as in a job; nothing of Kafka is tested.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import streamgraft as sg
from streamgraft._adl import describe
from streamgraft._analysis import analyze
from streamgraft._checks import check
from streamgraft_common.adl import Operator
from streamgraft_common.pe_metadata import InputPort, PeMetadata
from streamgraft_operator.graph import JobContext, topology_of
from streamgraft_pe_runtime.plan import Compiler

_RECORD = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp,"
    " timestampType int, headers array<struct<key: string, value: binary>>"
)
"""What Spark's Kafka source gives, with headers."""


class Hops:
    """An application whose PEs have taken all that was written to its outside topics."""

    def __init__(
        self, app: sg.Application, spark: SparkSession, folder: Path, **topics: Iterable[object]
    ) -> None:
        """`topics`: the values of the records, as JSON."""
        assert check(app.graph) == []
        found = analyze(app.graph, spark, Path(__file__).parent)
        assert found.errors == []
        self._spark, self._folder = spark, folder
        for topic, values in topics.items():
            texts = [(json.dumps(value),) for value in values]
            rows = spark.createDataFrame(texts, "value string")
            self._write(topic, rows.withColumn("key", F.lit(None)))
        self.adl = describe(app, found, Path(__file__), "app")
        context = JobContext("default", "hops", "uid", "digest", "b:9092")
        topology = topology_of(self.adl, context, {})
        self.pes: list[PeMetadata] = [pe.metadata for pe in topology.pes]
        for pe in self.pes:
            self._run(pe, Compiler(app, self.adl, pe))

    def records(self, port: InputPort, shards: Sequence[int], way: str) -> DataFrame:
        """Return the records of a topic, in one batch."""
        reader = self._spark.readStream.schema(_RECORD)
        return reader.parquet(str(self._topic(port.topic)))

    def source(self, operator: Operator, function: Callable[..., Any]) -> DataFrame:
        """Return what the application's function makes."""
        frame: DataFrame = function(self._spark)
        return frame

    def written(self, topic: str) -> list[tuple[str | None, Mapping[str, Any]]]:
        """Return key and value of each record of a topic, in the order of their values."""
        rows = self._spark.read.schema(_RECORD).parquet(str(self._topic(topic)))
        texts = rows.select(F.col("key").cast("string"), F.col("value").cast("string")).collect()
        return [
            (row.key, json.loads(row.value)) for row in sorted(texts, key=lambda row: row.value)
        ]

    def _topic(self, topic: str) -> Path:
        place = self._folder / "topics" / topic
        place.mkdir(parents=True, exist_ok=True)
        return place

    def _run(self, pe: PeMetadata, compiler: Compiler) -> None:
        plan = compiler.compile((0,), self)

        def write(records: DataFrame, number: int) -> None:
            records.persist()
            for port in pe.outputs:
                self._write(port.topic, records.where(F.col("topic") == port.topic))

        writer = plan.frame.writeStream.foreachBatch(write).outputMode(plan.output_mode)
        checkpoint = self._folder / "checkpoints" / str(pe.pe_id)
        writer = writer.option("checkpointLocation", str(checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination()

    def _write(self, topic: str, records: DataFrame) -> None:
        columns = {
            "key": F.col("key").cast("binary"),
            "value": F.col("value").cast("binary"),
            "topic": F.lit(topic),
            "partition": F.lit(0),
            "offset": F.monotonically_increasing_id(),
            "timestamp": F.current_timestamp(),
            "timestampType": F.lit(0),
            "headers": F.lit(None).cast("array<struct<key: string, value: binary>>"),
        }
        chosen = records.select(*(column.alias(name) for name, column in columns.items()))
        chosen.write.mode("append").parquet(str(self._topic(topic)))
