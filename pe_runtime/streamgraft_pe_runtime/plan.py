"""Compile a PE: its graph metadata and the application's functions → one Spark plan.

Operators run in order on DataFrames. Ports that take the same frame (or parts of it, behind a
split) share one pass over it: an array of records per row, exploded. So nothing is computed twice.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from streamgraft_common import names
from streamgraft_common.adl import Adl, Operator
from streamgraft_common.batches import Batch
from streamgraft_common.frames import row_of, told_apart
from streamgraft_common.own_conf import DEFAULT_MAX_OFFSETS, MAX_OFFSETS
from streamgraft_common.pe_metadata import InputPort, OutputPort, PeMetadata
from streamgraft_pe_runtime import encoded, expressions, malformed, plan_scans, repeats
from streamgraft_pe_runtime.application import Application
from streamgraft_pe_runtime.kafka_access import UNASKED, spark_options
from streamgraft_pe_runtime.kept_columns import all_kept
from streamgraft_pe_runtime.real_time import noted, number_of
from streamgraft_pe_runtime.scan_order import stream_output
from streamgraft_pe_runtime.stream_columns import check_columns, floating
from streamgraft_pe_runtime.targets import KafkaTarget, Targets

_KAFKA_TYPES = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "headers": expressions.HEADERS_TYPE,
}
KAFKA_COLUMNS = ", ".join(f"{name} {kind}" for name, kind in _KAFKA_TYPES.items())
"""Those of a raw source; Spark's own has one more, `timestampType`."""
READ_COMMITTED = {"kafka.isolation.level": "read_committed"}
"""Records of transactions that are open or aborted are not for readers."""
IMPATIENT = {"kafka.default.api.timeout.ms": "10000", "kafka.request.timeout.ms": "9000"}
"""A query that can't reach Kafka fails, and says so, within ten seconds rather than sixty; it can't
be stopped before."""
AT_ONCE = {"kafka.fetch.max.wait.ms": "0"}
"""A micro-batch reads records that are there. Spark's consumer asks the broker where they begin and
end, on the connection on which Kafka's client has just asked for more, and the broker answers in
order: each input would wait for its next record, or for half a second."""


@dataclass(frozen=True)
class SinkCall:
    """A function of the application that takes each batch's rows and its number (foreachBatch)."""

    function: Callable[[DataFrame, Batch], None]
    writer: str
    """Names sink and shard."""
    shard: int


@dataclass(frozen=True)
class Plan:
    """One streaming frame, where its rows go, and the output mode.

    For Kafka the frame has the columns of a record (target, topic, key, value, partition, headers),
    where `target` indexes the targets; a sink function takes the rows of its stream. In real-time
    mode there is one target, and each way that rows go has scans of its own.
    """

    frame: DataFrame
    output: list[KafkaTarget] | SinkCall
    output_mode: str
    real_time: bool = False
    joint: bool = False
    """Whether it has several shards, to be kept apart."""
    outputs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Way → what its rows are written to (scan_order.Scans), in real-time mode."""
    told: Sequence[str] = ()
    """Topics with readers of ours."""
    states: int = 0
    """Of how many shards that are to be kept apart it keeps state."""

    @cached_property
    def topics(self) -> list[str | None]:
        """The name of each scan, as plan_scans.names has it."""
        return plan_scans.names(self.frame)

    @property
    def scans(self) -> int:
        """How many times it reads an input."""
        return len(self.topics)


class Inputs(Protocol):
    """Where a plan's rows come from: the real streams, or empty ones for the warm-up."""

    def records(self, port: InputPort, shards: Sequence[int], way: str) -> DataFrame:
        """Return the Kafka columns of an input port as a streaming frame.

        `way`: that its rows go, as long as they have the scan for themselves.
        """

    def source(self, operator: Operator, function: Callable[..., Any]) -> DataFrame:
        """Return the streaming frame of an operator of kind source."""


def batch_limit(metadata: PeMetadata) -> int:
    """Return how many records of an input one batch takes at most. Pure."""
    return int(metadata.spark_conf.get(MAX_OFFSETS, DEFAULT_MAX_OFFSETS))


def kafka_options(
    port: InputPort, metadata: PeMetadata, operator: Operator | None, shards: Sequence[int]
) -> dict[str, str]:
    """Return the options of Spark's Kafka source for an input of shards. Pure."""
    endpoint = operator.kafka if operator and port.external else None
    begins = endpoint or (operator.imported if operator else None)
    options = {
        "kafka.bootstrap.servers": port.bootstrap_servers,
        "startingOffsets": begins.starting_offsets if begins else "earliest",
        **READ_COMMITTED,
        **spark_options(port.tls),
        **UNASKED,
        **IMPATIENT,
    }
    if not metadata.real_time:  # there a batch is as long as its time, and Spark rejects a limit
        options |= {"maxOffsetsPerTrigger": str(batch_limit(metadata)), **AT_ONCE}
    if port.imported:
        options["operator"] = port.operator  # whose topics are told while it runs
    elif metadata.region is not None:
        options["assign"] = json.dumps({port.topic: list(shards)})
    elif port.partitions is None:
        options["subscribe"] = port.topic
    else:
        options["assign"] = json.dumps({port.topic: list(range(port.partitions))})
    if port.repeats:
        options |= {"includeHeaders": "true"}
    if port.may_lose:
        options |= {"failOnDataLoss": "false"}
    if endpoint:
        options |= {"includeHeaders": "true"} if endpoint.format == "raw" else {}
        options |= endpoint.options
    return options


def tasks(port: InputPort, metadata: PeMetadata) -> int:
    """Return how many tasks of a batch read an input: one a slot at most, for each costs. Pure.

    If it is one, rows need not be shuffled to get to their state, either.
    """
    partitions = 1 if metadata.region else port.partitions
    return min(partitions or metadata.slots, metadata.slots)


def passing(records: DataFrame, refused: str = "") -> DataFrame:
    """Return the records of all topics but one: of all, or of none in a rehearsal.

    Spark generates code with numbers written into it, but with references to texts. So the code
    that a rehearsal compiles is the very code that the first batch of a shard needs.
    """
    return records.where(F.col("topic") != refused)


class RealInputs:
    """The streams themselves."""

    def __init__(self, session: SparkSession, metadata: PeMetadata, adl: Adl) -> None:
        self._session = session
        self._metadata = metadata
        self._operators = {operator.name: operator for operator in adl.operators}

    def records(self, port: InputPort, shards: Sequence[int], way: str) -> DataFrame:
        """Return the Kafka columns of an input port as a streaming frame."""
        options = kafka_options(port, self._metadata, self._operators.get(port.operator), shards)
        source = plan_scans.IMPORTED if port.imported else "kafka"
        reader = self._session.readStream.format(source).options(**options)
        records = passing(reader.option(plan_scans.WAY, number_of(way)).load())
        records = repeats.dropped(records, port, number_of(way), self._metadata, options)
        if self._metadata.real_time:  # a task waits for its partition's records all the time
            return noted(records, way)
        return records.coalesce(tasks(port, self._metadata))

    def source(self, operator: Operator, function: Callable[..., Any]) -> DataFrame:
        """Return what the application's function makes."""
        frame: DataFrame = function(self._session)
        return frame


@dataclass(frozen=True)
class _Stream:
    """A stream as part of a frame: the rows that meet the condition (None: all)."""

    base: DataFrame
    condition: str | None = None

    def frame(self) -> DataFrame:
        return self.base if self.condition is None else self.base.where(self.condition)

    def split(self, condition: str) -> "_Stream":
        # A condition may end with a comment.
        both = condition if self.condition is None else f"({self.condition}\n) and ({condition}\n)"
        return _Stream(self.base, both)


class Compiler:
    """Compiles the plan of a query over shards."""

    def __init__(
        self,
        application: Application,
        adl: Adl,
        metadata: PeMetadata,
        filters: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """`filters`: tells Spark expressions of the rows that imports want, by operator; asked
        whenever a plan is compiled."""
        self._application = application
        self._filters = filters
        self._metadata = metadata
        self._operators = {operator.name: operator for operator in adl.operators}
        self._schemas = {
            stream.name: StructType.fromJson(stream.stream_schema) for stream in adl.streams
        }

    def compile_joint(self, shards: Sequence[int], rows: Inputs) -> Plan:
        """Return the plan of a query that keeps its shards apart, be it one (`scala/shards`)."""
        operators = [self._operators[name] for name in self._metadata.operators]
        states = len(shards) if any(item.stateful for item in operators) else 0
        return replace(self.compile(shards, rows), joint=True, states=states)

    def compile(self, shards: Sequence[int], rows: Inputs) -> Plan:
        """Return the plan of a query. Raises OtherColumns and OtherStreams."""
        if self._metadata.real_time:
            return self._routed(self._ways(shards, rows), shards, "update")
        streams: dict[str, _Stream] = {}
        inputs = {port.stream: port for port in self._metadata.inputs}
        for port in self._metadata.inputs:
            streams[port.stream] = _Stream(
                self._decoded(port, rows.records(port, shards, port.stream))
            )
        operators = [self._operators[name] for name in self._metadata.operators]
        updates = any(item.output_mode == "update" for item in operators)
        mode = "update" if updates else "append"
        for operator in operators:
            if operator.kind == "sink":  # the only output of its PE
                frame = streams[operator.inputs[0]].frame()
                return Plan(frame, self._call(operator, shards[0]), mode)
            if not (operator.kind in ("kafka-source", "import") and operator.outputs[0] in inputs):
                taken = [streams[name] for name in operator.inputs]
                streams |= self._applied(operator, taken, rows)
        return self._routed(streams, shards, mode)

    def _ways(self, shards: Sequence[int], rows: Inputs) -> dict[str, _Stream]:
        """Return the streams that leave in real-time mode, and what splits make them of.

        Spark takes no plan that reads a source twice there: each way has scans of its own.
        """
        ports = {port.stream: port for port in self._metadata.inputs}
        operators = [self._operators[name] for name in self._metadata.operators]
        makers = {stream: operator for operator in operators for stream in operator.outputs}
        made: dict[str, _Stream] = {}

        def anew(stream: str, way: str) -> _Stream:
            if stream in ports:
                way = f"{way}<{stream}"
                records = rows.records(ports[stream], shards, way)
                return _Stream(self._decoded(ports[stream], records))
            operator = makers[stream]
            taken = []
            for index, name in enumerate(operator.inputs):
                # What is done to rows on their way may change; where they meet others tells apart.
                again = "+" * operator.inputs[:index].count(name)
                apart = f"{way}<{name}{again}" if len(operator.inputs) > 1 else way
                taken.append(anew(name, apart))
            return self._applied(operator, taken, rows)[stream]

        def leaving(stream: str) -> _Stream:
            operator = None if stream in ports else makers[stream]
            if operator is None or operator.kind != "split":
                if stream not in made:
                    made[stream] = anew(stream, stream)
                return made[stream]
            return self._applied(operator, [leaving(operator.inputs[0])], rows)[stream]

        parts = {port.stream: leaving(port.stream) for port in self._metadata.outputs}
        return made | parts

    def _decoded(self, port: InputPort, records: DataFrame) -> DataFrame:
        schema, endpoint = self._schemas[port.stream], self._operators[port.operator].kafka
        if port.external and endpoint:
            if endpoint.format == "raw":
                return records.select(*_KAFKA_TYPES)
            return malformed.decoded(records, port, endpoint, schema)
        rows = records.where("value is not null").select(
            row_of(F.col("value").cast("string"), schema).alias("row")
        )
        rows = rows.select("row.*")
        wanted = self._filters().get(port.operator) if port.imported else ""
        return rows.where(wanted) if wanted else rows

    def _applied(
        self, operator: Operator, taken: Sequence[_Stream], rows: Inputs
    ) -> dict[str, _Stream]:
        if operator.kind == "split":
            return {part.stream: taken[0].split(part.condition) for part in operator.split}
        if operator.kind == "source":
            frame = rows.source(operator, self._function(operator))
        elif operator.kind == "function":
            frames = told_apart([stream.frame() for stream in taken])
            frame = self._function(operator)(*frames)
            if self._metadata.region is not None:
                plan_scans.check_inputs(operator.name, frame, frames)
        else:
            return {}
        if operator.stateful:
            frame = all_kept(frame)
        return {operator.outputs[0]: _Stream(frame)}

    def _call(self, operator: Operator, shard: int) -> SinkCall:
        pe = self._metadata
        writer = names.transactional_id(pe.namespace, pe.job, pe.stage_name, shard, operator.name)
        return SinkCall(self._function(operator), writer, shard)

    def _function(self, operator: Operator) -> Callable[..., Any]:
        return self._application.functions[operator.function or operator.name]

    def _routed(self, streams: Mapping[str, _Stream], shards: Sequence[int], mode: str) -> Plan:
        # Whoever is first among shards lends its name to the transactions of all.
        targets = Targets(self._metadata, self._operators, min(shards))
        routes: dict[int, tuple[DataFrame, list[tuple[str, str | None]]]] = {}
        written: dict[int, list[str]] = {}
        for port in self._metadata.outputs:
            stream = streams[port.stream]
            if not port.external:
                check_columns(port.operator, self._schemas[port.stream], stream.base.schema)
            raw = stream.base.columns if self._is_raw(port) else None
            target = targets.index(port)
            # Schemas have defaults for what is missing, which is not what is null.
            nulls = (target, port.topic) in targets.encodings
            floats = floating(stream.base.schema)
            record = expressions.record_expression(port, target, raw, floats, nulls=nulls)
            _, records = routes.setdefault(id(stream.base), (stream.base, []))
            records.append((record, stream.condition))
            output = port.operator
            if not port.external:
                output = stream_output(port.operator, port.stream)
            written.setdefault(id(stream.base), []).append(output)
        encodings = targets.encodings
        partition = F.expr(expressions.partition_expression(shards))
        frames = [
            encoded.with_encoded(_records(frame, records), encodings).withColumn(
                "partition", partition
            )
            for frame, records in routes.values()
        ]
        whole = reduce(DataFrame.unionAll, frames)
        if not self._metadata.real_time:
            return Plan(whole, targets.every, mode)
        if not targets.alike:
            raise ValueError(
                "real-time mode writes with one set of options, one delivery and to one set of"
                " brokers: give the sinks the same, or leave out real_time"
            )
        ways = {
            scan[2]: written[base]
            for base, (frame, _) in routes.items()
            for scan in filter(None, plan_scans.of(frame))
        }
        told = [port.topic for port in self._metadata.outputs if not port.external]
        return Plan(whole, [targets.one], mode, real_time=True, outputs=ways, told=told)

    def _is_raw(self, port: OutputPort) -> bool:
        operator = self._operators[port.operator]
        return bool(port.external and operator.kafka and operator.kafka.format == "raw")


def _records(frame: DataFrame, records: list[tuple[str, str | None]]) -> DataFrame:
    if len(records) == 1:
        record, condition = records[0]
        frame = frame if condition is None else frame.where(condition)
        generator = record
    else:
        generator = expressions.exploded(records)
    return frame.select(F.expr(generator).alias("record")).select("record.*")
