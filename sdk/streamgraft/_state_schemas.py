"""The schemas of an operator's state, as Spark itself writes them when a query begins.

A query's first batch is planned on an empty checkpoint, and not run: Spark then writes there what
it compares with later, the schema of each table of state (StateSchemaCompatibilityChecker).
"""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from streamgraft._graph import OutputMode
from streamgraft_common.adl import StateColumn, StateTable

_STATE = "state"
_DEFAULT = "default"
"""Spark's name of a store that needs none."""
_NO_TIME = '{"batchWatermarkMs":0,"batchTimestampMs":0,"conf":{}}'


def state_tables(frame: DataFrame, mode: OutputMode) -> list[StateTable]:
    """Return the tables of state that a query of the frame keeps, in Spark's order.

    Raises what Spark raises if it can't plan the query.
    """
    with tempfile.TemporaryDirectory(prefix="streamgraft-state-") as folder:
        plan_first_batch(frame, mode, Path(folder))
        return list(_read(frame, Path(folder) / _STATE))


def plan_first_batch(frame: DataFrame, mode: OutputMode, folder: Path) -> None:
    """Plan the first batch of a query whose checkpoint is a folder.

    Raises PySparkException if the state that is there has another schema.
    """
    # What transformWithState has kept before is looked for if this batch is known to be planned.
    planned = folder / "offsets"
    planned.mkdir(exist_ok=True)
    (planned / "0").touch()
    session: Any = frame.sparkSession
    jvm: Any = session._jvm
    streaming = jvm.org.apache.spark.sql.execution.streaming
    modes = jvm.org.apache.spark.sql.streaming.OutputMode
    query: Any = frame._jdf.queryExecution()
    propagator = getattr(streaming.runtime, "NoOpWatermarkPropagator$")
    execution = streaming.runtime.IncrementalExecution(
        session._jsparkSession,
        query.analyzed(),
        modes.Update() if mode == "update" else modes.Append(),
        f"file:{folder / _STATE}",
        jvm.java.util.UUID.randomUUID(),  # the query's id, and that of its run
        jvm.java.util.UUID.randomUUID(),
        0,  # the batch, and the metadata of the one before
        jvm.scala.Option.empty(),
        streaming.checkpointing.OffsetSeqMetadata.apply(_NO_TIME),
        getattr(propagator, "MODULE$"),
        True,  # the first batch of a run
        jvm.scala.collection.mutable.HashMap(),
        jvm.scala.collection.mutable.HashMap(),
        query.mode(),
        False,  # nor is it the last
    )
    execution.executedPlan()


def _read(frame: DataFrame, folder: Path) -> Iterator[StateTable]:
    parts = [item for item in folder.iterdir() if item.name.isdecimal()]
    for part in sorted(parts, key=lambda item: int(item.name)):
        (metadata,) = (
            file
            for pattern in ("_metadata/metadata", "_metadata/v2/[0-9]*")
            for file in part.glob(pattern)
        )
        operator = json.loads(metadata.read_text().split("\n", 1)[1])["operatorInfo"]
        for file in sorted(_schema_files(part)):
            yield from _tables(frame, operator["operatorName"], folder, file)


def _schema_files(part: Path) -> Iterator[Path]:
    # Of a store that has a name the folder lies between the partition's and its metadata.
    for pattern in ("0/_metadata/schema", "0/*/_metadata/schema", "_stateSchema/*/[0-9]*"):
        yield from part.glob(pattern)


def _tables(frame: DataFrame, operator: str, folder: Path, file: Path) -> Iterator[StateTable]:
    session: Any = frame.sparkSession
    jvm: Any = session._jvm
    state = jvm.org.apache.spark.sql.execution.streaming.state
    store = file.parent.parent.name if file.name == "schema" else _DEFAULT
    store = _DEFAULT if store.isdecimal() else store
    place = state.StateStoreId(f"file:{folder}", 0, 0, store)
    provider = state.StateStoreProviderId(place, jvm.java.util.UUID.randomUUID())
    nil = getattr(jvm.scala.collection.immutable, "Nil$").__getattr__("MODULE$")
    paths = nil.appended(jvm.org.apache.hadoop.fs.Path(f"file:{file}"))
    conf = session._jsparkSession.sessionState().newHadoopConf()
    reader = state.StateSchemaCompatibilityChecker(
        provider, conf, paths, jvm.scala.Option.empty(), False
    )
    found = reader.readSchemaFile()
    tables = [found.apply(index) for index in range(found.size())]
    for table in sorted(tables, key=lambda item: str(item.colFamilyName())):
        name = table.colFamilyName() if table.colFamilyName() != _DEFAULT else store
        yield StateTable(
            operator=operator,
            name="" if name == _DEFAULT else name,
            key=_columns(table.keySchema()),
            value=_columns(table.valueSchema()),
        )


def _columns(schema: Any) -> list[StateColumn]:
    fields = StructType.fromJson(json.loads(schema.json())).fields
    return [StateColumn(name=item.name, type=item.dataType.simpleString()) for item in fields]
