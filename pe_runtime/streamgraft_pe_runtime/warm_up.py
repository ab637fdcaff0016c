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
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from streamgraft_common.adl import Adl, Operator
from streamgraft_common.pe_metadata import InputPort, PeMetadata
from streamgraft_pe_runtime import query
from streamgraft_pe_runtime.plan import KAFKA_COLUMNS, Compiler, Plan, kafka_options
from streamgraft_pe_runtime.query import ShardQuery

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.02
_ONE_BATCH_SECONDS = 86400.0
"""Trigger interval: the first batch comes at once, a second one would only cost CPU."""
_PLAN_SECONDS = 60.0


def warm_up(session: SparkSession, compiler: Compiler, metadata: PeMetadata, adl: Adl) -> None:
    """Run the PE's plan on no rows, once from nowhere and once from Kafka; start Python workers.

    A failure is only logged: the shards will meet it again, and report it where users look.
    """
    folder = Path(tempfile.mkdtemp(prefix="streamgraft-warm-up-"))
    empty = EmptyInputs(session, adl)
    try:
        for inputs in (empty, UnseenInputs(empty, session, metadata, adl)):
            plan = _harmless(compiler.compile(0, inputs))
            checkpoint = folder / type(inputs).__name__
            _run(partial(query.start, plan, checkpoint, _ONE_BATCH_SECONDS, "warm-up"))
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

    def records(self, port: InputPort, shard: int) -> DataFrame:
        """Return Kafka's columns."""
        options = kafka_options(port, self._metadata, self._operators.get(port.operator), shard)
        options.pop("assign", None)
        options |= {"subscribe": port.topic, "maxOffsetsPerTrigger": "1"}
        options["startingOffsets"] = "earliest"
        records = self._session.readStream.format("kafka").options(**options).load()
        return records.where("offset < 0").coalesce(1)

    def source(self, operator: Operator, function: Callable[..., Any]) -> DataFrame:
        """Return the columns of the source's stream; the function is not called."""
        return self._others.source(operator, function)


def _harmless(plan: Plan) -> Plan:
    """Return the plan in micro-batches, with sink functions that do nothing."""

    def drop(batch: DataFrame, batch_id: int) -> None:
        batch.write.format("noop").mode("overwrite").save()

    plan = replace(plan, real_time=False)  # the rows that stand in don't come in that mode
    return plan if isinstance(plan.output, list) else replace(plan, output=drop)


def _run(start: Callable[[], ShardQuery]) -> None:
    running = start()
    deadline = time.monotonic() + _PLAN_SECONDS
    while time.monotonic() < deadline and not running.first_trigger_done():
        if failure := running.failure():
            log.warning("warm-up: %s", failure.partition("\n")[0])
            return
        time.sleep(_POLL_SECONDS)
    running.stop(_PLAN_SECONDS)
