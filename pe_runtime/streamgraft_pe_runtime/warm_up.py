"""Warm-up: what a first batch costs, paid before the PE says that it is ready.

A new query in a warm driver has its first output within half a second; in a cold one it takes ten
times as long (class loading, code generation, Python workers). The PE's own plan runs once on rows
of which none passes a filter that Spark can't see through: all code is loaded and compiled, no
user code sees a row, and nothing is written.
"""

import logging
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from streamgraft_common.adl import Adl, Operator
from streamgraft_common.pe_metadata import InputPort, PeMetadata
from streamgraft_pe_runtime import query
from streamgraft_pe_runtime.plan import (
    IMPATIENT,
    KAFKA_COLUMNS,
    Compiler,
    KafkaTarget,
    Plan,
)
from streamgraft_pe_runtime.query import ShardQuery

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.02
_ONE_BATCH_SECONDS = 86400.0
"""Trigger interval: the first batch comes at once, a second one would only cost CPU."""
_PLAN_SECONDS = 60.0
_KAFKA_SECONDS = 10.0


def warm_up(session: SparkSession, compiler: Compiler, metadata: PeMetadata, adl: Adl) -> None:
    """Run the PE's plan on no rows, and touch Kafka's source and the Python workers.

    A failure is only logged: the shards will meet it again, and report it where users look.
    """
    folder = Path(tempfile.mkdtemp(prefix="streamgraft-warm-up-"))
    try:
        plan = _harmless(compiler.compile(0, EmptyInputs(session, adl)))
        _run(
            lambda: query.start(plan, folder / "plan", _ONE_BATCH_SECONDS, "warm-up"), _PLAN_SECONDS
        )
        if metadata.inputs:
            source = kafka_only(session, metadata.inputs[0])
            _run(
                lambda: query.start(source, folder / "kafka", _ONE_BATCH_SECONDS, "kafka"),
                _KAFKA_SECONDS,
            )
        session.range(1).select(F.udf(str)("id")).collect()
    except Exception as error:  # user code runs here: it must not keep the PE from starting
        log.warning("warm-up failed: %s", error)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class EmptyInputs:
    """Streams whose batches never have rows, which Spark can't know beforehand."""

    def __init__(self, session: SparkSession, adl: Adl) -> None:
        self._session = session
        self._schemas = {stream.name: stream.stream_schema for stream in adl.streams}

    def records(self, port: InputPort, shard: int) -> DataFrame:
        """Return Kafka's columns."""
        return self._empty(StructType.fromDDL(KAFKA_COLUMNS))

    def source(self, operator: Operator, function: Callable[..., Any]) -> DataFrame:
        """Return the columns of the source's stream; the function is not called."""
        return self._empty(StructType.fromJson(self._schemas[operator.outputs[0]]))

    def _empty(self, schema: Any) -> DataFrame:
        # Unlike `rate`, this source has rows at once, so the very first trigger runs the plan.
        ticks = (
            self._session.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
        )
        columns = [F.lit(None).cast(field.dataType).alias(field.name) for field in schema.fields]
        return ticks.where("value < 0").select(*columns)


def _harmless(plan: Plan) -> Plan:
    """Return the plan in micro-batches, with sink functions that do nothing."""

    def drop(batch: DataFrame, batch_id: int) -> None:
        batch.write.format("noop").mode("overwrite").save()

    plan = replace(plan, real_time=False)  # the rows that stand in don't come in that mode
    return plan if isinstance(plan.output, list) else replace(plan, output=drop)


def kafka_only(session: SparkSession, port: InputPort) -> Plan:
    """Return a plan that reads one record of an input at most and drops it."""
    options = {
        "kafka.bootstrap.servers": port.bootstrap_servers,
        **IMPATIENT,
        "subscribe": port.topic,
        "maxOffsetsPerTrigger": "1",
        "startingOffsets": "earliest",
    }
    records = session.readStream.format("kafka").options(**options).load()
    columns = ["topic", "key", "value", "partition", "headers"]
    headers = F.lit(None).cast("array<struct<key: string, value: binary>>").alias("headers")
    nothing = records.where("offset < 0").withColumn("headers", headers).select(*columns)
    return Plan(nothing, [KafkaTarget(port.bootstrap_servers)], "append")


def _run(start: Callable[[], ShardQuery], seconds: float) -> None:
    running = start()
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not running.first_trigger_done():
        if failure := running.failure():
            log.warning("warm-up: %s", failure.partition("\n")[0])
            return
        time.sleep(_POLL_SECONDS)
    running.stop(seconds)
