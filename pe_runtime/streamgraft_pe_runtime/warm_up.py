"""Warm-up: what a first batch costs, paid before the PE says that it is ready.

A new query in a warm driver has its first output within half a second; in a cold one it takes ten
times as long (class loading, code generation, Python workers). The PE's own plan runs a few times,
and again from its checkpoint, on rows of which none passes a filter that Spark can't see through:
all code is loaded and compiled, no user code sees a row, and nothing is written.
"""

import json
import logging
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from streamgraft_common.adl import Adl, Operator
from streamgraft_common.frames import row_of
from streamgraft_common.pe_metadata import (
    HDFS,
    ROCKSDB,
    STATE_STORE_PROVIDER,
    InputPort,
    PeMetadata,
)
from streamgraft_pe_runtime import query, repeats
from streamgraft_pe_runtime.conf import FEW_RECORDS
from streamgraft_pe_runtime.joint_checkpoints import describe
from streamgraft_pe_runtime.plan import (
    KAFKA_COLUMNS,
    Compiler,
    Plan,
    kafka_options,
    passing,
    tasks,
)
from streamgraft_pe_runtime.real_time import noted, number_of
from streamgraft_pe_runtime.shard_names import QUERIES

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.02
_TRIGGER_SECONDS = 0.2
"""Also the length of a batch in real-time mode."""
_BATCHES = 5
"""Batches of a plan on rows from nowhere: only some runs later does the JVM compile its code."""
STARTS = (3, 1)
"""Batches of a plan each time that it starts: first anew, then from where it had come."""
REHEARSED_STARTS = (3, 1, 1, 1, 1, 1)
"""The same where nobody waits for it: what is compiled then takes no time of a shard's first batch,
and no CPU of the shards beside it."""
_JSON_ROWS = 2000
"""So many that the JVM compiles what each record takes."""
_PYTHON_ROWS = 100
_PYTHON_ROUNDS = 3
_PLAN_SECONDS = 60.0


def warm_up(
    session: SparkSession,
    compiler: Compiler,
    metadata: PeMetadata,
    adl: Adl,
    starts: Sequence[int] = STARTS,
    *,
    joint: bool = False,
    kafka: bool = True,
) -> None:
    """Run the PE's plan on no rows, from nowhere and from Kafka; start Python workers.

    Without `kafka` no broker is asked: the client would wait for minutes for one that is not there.
    `joint`: whether one query is to run over several shards. A failure is only logged: the shards
    will meet it again, and report it where users look.
    """
    shards = range(metadata.shard_count) if joint else (0,)
    folder = Path(tempfile.mkdtemp(prefix="streamgraft-warm-up-"))
    empty = EmptyInputs(session, metadata, adl)
    try:
        # The rows that stand in don't come in real-time mode.
        nowhere = replace(_harmless(compiler.compile(shards, empty)), real_time=False)
        _run(nowhere, folder / "nowhere", _BATCHES)
        if kafka:
            unseen = UnseenInputs(empty, session, metadata, adl)
            compiled = (compiler.compile_joint if joint else compiler.compile)(shards, unseen)
            seen = _harmless(compiled)
            checkpoint = folder / QUERIES / "kafka"
            describe(checkpoint, shards, session.conf.get(STATE_STORE_PROVIDER, HDFS))
            session.conf.set(FEW_RECORDS, "0")  # what a backlog takes
            for batches in starts:
                # A topic may have one record only, but in real-time mode batches end by the clock.
                _run(seen, checkpoint, batches if seen.real_time else 1)
                session.conf.unset(FEW_RECORDS)
        _run(nowhere, folder / "nowhere", 1)
        _read_snapshot(session, folder / "snapshot")
        if _runs_python(nowhere):
            _send_rows_through_python(session)
        _read_and_write_json(session)
    except Exception as error:  # user code runs here: it must not keep the PE from starting
        log.warning("warm-up failed: %s", error)
    finally:
        session.conf.unset(FEW_RECORDS)
        shutil.rmtree(folder, ignore_errors=True)


class EmptyInputs:
    """Streams whose batches never have rows, which Spark can't know beforehand."""

    def __init__(self, session: SparkSession, metadata: PeMetadata, adl: Adl) -> None:
        self._session = session
        self._metadata = metadata
        self._schemas = {stream.name: stream.stream_schema for stream in adl.streams}

    def records(self, port: InputPort, shards: Sequence[int], way: str) -> DataFrame:
        """Return Kafka's columns, in as many tasks as the real ones: then the code is the same."""
        records = self._empty(KAFKA_COLUMNS)
        return records.coalesce(tasks(port, self._metadata))

    def source(self, operator: Operator, function: Callable[..., Any]) -> DataFrame:
        """Return the columns of the source's stream; the function is not called."""
        return self._empty(StructType.fromJson(self._schemas[operator.outputs[0]]))

    def _empty(self, schema: StructType | str) -> DataFrame:
        # Unlike `rate`, this source has rows at once, so the very first trigger runs the plan.
        ticks = (
            self._session.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
        )
        # Constants would be computed beforehand, and much of the plan with them.
        row = row_of(F.col("value").cast("string"), schema).alias("row")
        return ticks.where("value < 0").select(row).select("row.*")


class UnseenInputs:
    """The real streams, of which a batch reads one record and lets none pass.

    A topic without records makes no batch; `others` stand in for sources that are no topics.
    """

    def __init__(
        self, others: EmptyInputs, session: SparkSession, metadata: PeMetadata, adl: Adl
    ) -> None:
        self._others = others
        self._session = session
        self._metadata = metadata
        self._operators = {operator.name: operator for operator in adl.operators}

    def records(self, port: InputPort, shards: Sequence[int], way: str) -> DataFrame:
        """Return Kafka's columns."""
        options = kafka_options(port, self._metadata, self._operators.get(port.operator), shards)
        options.pop("assign", None)
        options["subscribe"] = port.topic
        if self._metadata.real_time:  # a batch is as long as its time, and knows no limit
            options["startingOffsets"] = "latest"
        else:
            options |= {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "1"}
        records = self._session.readStream.format("kafka").options(**options).load()
        unseen = passing(records, refused=port.topic)
        unseen = repeats.dropped(unseen, port, number_of(way), self._metadata, options)
        if self._metadata.real_time:
            return noted(unseen, way)
        return unseen.coalesce(tasks(port, self._metadata))

    def source(self, operator: Operator, function: Callable[..., Any]) -> DataFrame:
        """Return the columns of the source's stream; the function is not called."""
        return self._others.source(operator, function)


def _harmless(plan: Plan) -> Plan:
    """Return the plan without what a shard's owner alone may do.

    Sink functions do nothing. Records, of which there are none, would be written under no
    transactional id: the shard's own would fence whoever runs it.
    """

    def drop(batch: DataFrame, number: int) -> None:
        batch.write.format("noop").mode("overwrite").save()

    if not isinstance(plan.output, list):
        return replace(plan, output=replace(plan.output, function=drop))
    return replace(plan, output=[target.at_least_once() for target in plan.output])


def _runs_python(plan: Plan) -> bool:
    """Return whether rows come to Python workers, or may do so in a sink function."""
    if not isinstance(plan.output, list):
        return True
    execution: Any = plan.frame._jdf.queryExecution()
    jvm: Any = plan.frame.sparkSession._jvm
    patterns = getattr(getattr(jvm.org.apache.spark.sql.catalyst.trees, "TreePattern$"), "MODULE$")
    return bool(execution.analyzed().containsPattern(patterns.PYTHON_UDF()))


def _send_rows_through_python(session: SparkSession) -> None:
    """Send rows to Python workers and back, one by one and as Arrow batches.

    The rehearsal of a plan has none, and without rows the JVM loads nothing of Arrow.
    """
    rows = session.range(_PYTHON_ROWS)
    for _ in range(_PYTHON_ROUNDS):
        # Not `str` itself: PySpark warns of functions whose signature it can't read.
        rows.select(F.udf(lambda number: str(number))("id")).collect()
        copied = rows.mapInArrow(lambda batches: batches, rows.schema)
        copied.write.format("noop").mode("overwrite").save()


def _read_and_write_json(session: SparkSession) -> None:
    """Run what no row of a rehearsal comes to: records are read and written as JSON."""
    text = F.concat(F.lit('{"a":'), F.col("id"), F.lit(',"b":"'), F.col("id"), F.lit('"}'))
    row = F.struct(F.from_json(text, "a bigint, b string").alias("row"))
    session.range(_JSON_ROWS).select(F.to_json(row).alias("text")).write.format("noop").mode(
        "overwrite"
    ).save()


def _read_snapshot(session: SparkSession, file: Path) -> None:
    """Read the list of files of a RocksDB snapshot, which the state of a rehearsal never gets to.

    The class is read by reflection on Scala's signatures, which takes 0.4 s the first time.
    """
    if session.conf.get(STATE_STORE_PROVIDER, "") != ROCKSDB:
        return
    listed = {"localFileName": "1.sst", "dfsSstFileName": "1-a.sst", "sizeBytes": 1}
    log = {"localFileName": "1.log", "dfsLogFileName": "1-a.log", "sizeBytes": 1}
    columns = {"columnFamilyMapping": {"a": 0}, "columnFamilyTypeMapping": {"0": True}}
    content = {"sstFiles": [listed], "logFiles": [log], "numKeys": 1, **columns}
    file.write_text("v1\n" + json.dumps(content))
    jvm: Any = session._jvm
    state = jvm.org.apache.spark.sql.execution.streaming.state
    state.RocksDBCheckpointMetadata.readFromFile(jvm.java.io.File(str(file)))


def _run(plan: Plan, checkpoint: Path, batches: int) -> None:
    """Run a plan until it has had its batches, or found nothing to do at its first trigger."""
    running = query.start(plan, checkpoint, _TRIGGER_SECONDS, "warm-up")
    deadline = time.monotonic() + _PLAN_SECONDS
    while time.monotonic() < deadline:
        done = len(running.reports(-1))
        if done >= batches or (not plan.real_time and not done and running.first_trigger_done()):
            break
        if failure := running.failure():
            log.warning("warm-up: %s", failure.partition("\n")[0])
            return
        time.sleep(_POLL_SECONDS)
    running.stop(_PLAN_SECONDS)
