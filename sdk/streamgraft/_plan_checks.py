"""Checks of analyzed plans and of the schemas that planning found."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    CharType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    MapType,
    StringType,
    StructType,
    VarcharType,
)

from streamgraft._errors import ApplicationError, SchemaMismatch
from streamgraft._graph import Graph, OperatorNode, OutputMode, RegionNode
from streamgraft._schemas import INPUT, KAFKA_COLUMNS, empty_stream, parse, reason
from streamgraft_common.columns import MALFORMED
from streamgraft_common.frames import row_of

_STATEFUL = {
    "Aggregate",
    "Deduplicate",
    "DeduplicateWithinWatermark",
    "Distinct",
    "Except",
    "Except All",
    "FlatMapGroupsInPandasWithState",
    "FlatMapGroupsWithState",
    "GlobalLimit",
    "TransformWithState",
    "TransformWithStateInPySpark",
}
"""Nodes that keep state over a stream; a join does if both its sides are streams."""


_ID = re.compile(r"#\d+L?")
"""What Spark puts behind the names of columns in expressions."""
CTE_REFERENCE = "CTERelationRef"
"""The leaf where a SELECT reads what a WITH defines; the definition has the scans."""
_AGGREGATING = {"Aggregate", "Distinct", "Except", "Except All"}
"""Those that Spark makes an aggregation of: SQL has other words for some."""
_TIMELESS = {"Aggregate", "Deduplicate", "Distinct", "Except"}
"""Those that do nothing without records, unless there is a watermark."""


def is_stateful(frame: DataFrame) -> bool:
    """Return whether the frame's plan keeps state from batch to batch."""
    return any(map(_keeps_state, _nodes(_analyzed(frame))))


def is_timeless(frame: DataFrame) -> bool:
    """Return whether a plan has state, and none that goes by time or by a watermark."""
    names = [node.nodeName() for node in filter(_keeps_state, _nodes(_analyzed(frame)))]
    return not has_watermark(frame) and bool(names) and _TIMELESS.issuperset(names)


def grouped_by(frame: DataFrame) -> list[list[str]]:
    """Return the columns by which each state of a plan is kept, none of one over all rows.

    Joins are left out: the two sides of one call its columns differently.
    """
    nodes = filter(_keeps_state, _nodes(_analyzed(frame)))
    return [_grouping(node) for node in nodes if node.nodeName() != "Join"]


def _grouping(node: Any) -> list[str]:
    name = node.nodeName()
    if name == "GlobalLimit":
        return []
    if name == "Aggregate":
        columns = node.groupingExpressions()
    elif name in ("Deduplicate", "DeduplicateWithinWatermark"):
        columns = node.keys()
    elif name in _AGGREGATING:
        columns = node.output()
    elif name == "TransformWithStateInPySpark":
        columns = node.leftAttributes()
    else:
        columns = node.groupingAttributes()
    found = [columns.apply(index) for index in range(columns.size())]
    return [_ID.sub("", str(item.toString())) for item in found]


def has_watermark(frame: DataFrame) -> bool:
    """Return whether a plan says how late records may be."""
    return any(node.nodeName() == "EventTimeWatermark" for node in _nodes(_analyzed(frame)))


def streams_of_its_own(frame: DataFrame) -> list[str]:
    """Return the formats of the streams that a plan reads beside those of `empty_stream`."""
    leaves = [node for node in _nodes(_analyzed(frame)) if not _children(node)]
    return sorted({name for leaf in leaves if (name := _read_by(leaf))})


def _read_by(leaf: Any) -> str | None:
    """Return the format of a stream that is no input's, None of any other leaf."""
    name = str(leaf.nodeName())
    if not leaf.isStreaming() or name == CTE_REFERENCE:
        return None
    if name == "StreamingRelation":  # of an interface of former times, like files'
        return str(leaf.sourceName())
    if name != "StreamingRelationV2":
        return name
    return None if leaf.extraOptions().containsKey(INPUT) else str(leaf.sourceName())


def _keeps_state(node: Any) -> bool:
    if not node.isStreaming():
        return False
    if node.nodeName() == "Join":
        return all(child.isStreaming() for child in _children(node))
    return node.nodeName() in _STATEFUL


def depends_on_mode(frame: DataFrame) -> bool:
    """Return whether the frame gives other rows, or none, in output mode update than in append."""
    if unsupported(frame.sparkSession, frame, "update"):
        return True
    return any(
        node.isStreaming() and node.nodeName() in _AGGREGATING for node in _nodes(_analyzed(frame))
    )


def unsupported(spark: SparkSession, frame: DataFrame, mode: OutputMode) -> str | None:
    """Return why Spark can't run the frame as a streaming query in the output mode, or None."""
    modes = _jvm(spark).org.apache.spark.sql.streaming.OutputMode
    wanted = modes.Append() if mode == "append" else modes.Update()
    try:
        _checker(spark).checkForStreaming(_analyzed(frame), wanted)
    except PySparkException as error:
        return reason(error).rstrip(";")
    return None


def column_errors(
    spark: SparkSession, operator: OperatorNode, schema: StructType
) -> Iterator[ApplicationError]:
    """Yield what keeps rows of the schema from travelling between PEs as JSON objects."""
    if not schema.names:
        yield SchemaMismatch(
            operator.location, f"{operator.name!r} makes a stream without columns", "give it some"
        )
        return
    names = [name.lower() for name in schema.names]
    if doubled := sorted({name for name in schema.names if names.count(name.lower()) > 1}):
        yield SchemaMismatch(
            operator.location,
            f"{operator.name!r} makes a stream with two columns {' and '.join(doubled)}",
            "rename or drop one of them",
        )
        return
    if MALFORMED in names:
        yield SchemaMismatch(
            operator.location,
            f"{operator.name!r} makes a stream with a column {MALFORMED}",
            "rename it: in this one, records that can't be read are noted",
        )
        return
    try:
        frame = empty_stream(spark, schema)
        frame.select(F.to_json(F.struct("*")), row_of(F.lit(""), schema))
    except PySparkException as error:
        yield SchemaMismatch(
            operator.location,
            f"{operator.name!r} makes a stream that can't be written as JSON: {reason(error)}",
            "cast that column, for example to a string",
        )


def key_errors(graph: Graph, schemas: Mapping[str, StructType]) -> Iterator[ApplicationError]:
    """Yield the key columns of regions and sinks that their streams don't have as they must."""
    for region in graph.regions:
        for stream, operator in graph.entering(region.name):
            if stream in schemas and (missing := _missing(region.key, schemas[stream])):
                yield SchemaMismatch(
                    operator.location,
                    f"stream {stream!r} enters region {region.name!r} without the key column"
                    f" {missing}",
                    f"it has {', '.join(schemas[stream].names)}; add the column, or choose another"
                    f" key at {region.location}",
                )
        yield from _ambiguous_keys(graph, region, schemas)
        yield from _mixed_keys(graph, region, schemas)
    for operator in graph.operators:
        if operator.kind == "kafka-sink" and operator.kafka and operator.inputs[0] in schemas:
            schema = schemas[operator.inputs[0]]
            wanted = [*operator.kafka.key, *(["value"] * (operator.kafka.format == "raw"))]
            if missing := _missing(wanted, schema):
                yield SchemaMismatch(
                    operator.location,
                    f"sink {operator.name!r} needs the column {missing}, which stream"
                    f" {operator.inputs[0]!r} does not have",
                    f"it has {', '.join(schema.names)}",
                )


def raw_errors(
    spark: SparkSession, graph: Graph, schemas: Mapping[str, StructType]
) -> Iterator[ApplicationError]:
    """Yield the columns of raw sinks that Spark can't make Kafka's own of."""
    record = parse(spark, KAFKA_COLUMNS)
    for operator in graph.operators:
        if operator.kind != "kafka-sink" or not operator.kafka or operator.kafka.format != "raw":
            continue
        schema = schemas.get(operator.inputs[0], StructType())
        names = ["value", "headers"] if operator.kafka.key else ["key", "value", "headers"]
        for name in filter(schema.names.__contains__, names):
            wanted = record[name].dataType
            try:
                empty_stream(spark, schema).select(F.col(name).cast(wanted))
            except PySparkException:
                yield SchemaMismatch(
                    operator.location,
                    f"sink {operator.name!r} needs {wanted.simpleString()} in column {name}, and"
                    f" stream {operator.inputs[0]!r} has {schema[name].dataType.simpleString()}",
                    "cast it, for example to a string, in an operator before",
                )


def _ambiguous_keys(
    graph: Graph, region: RegionNode, schemas: Mapping[str, StructType]
) -> Iterator[ApplicationError]:
    """Yield the key columns of which equal values have several texts."""
    for stream, operator in graph.entering(region.name):
        for field in schemas.get(stream, StructType()).fields:
            if field.name in region.key and (found := _ambiguity(field.dataType)):
                what, remedy = found
                yield SchemaMismatch(
                    operator.location,
                    f"stream {stream!r} enters region {region.name!r} with the key column"
                    f" {field.name} {what}, so equal keys would go to different channels",
                    remedy,
                )


def _ambiguity(data_type: DataType) -> tuple[str, str] | None:
    """Return why equal values of a key's type have several texts, and what to do; else None.

    Numbers that are a column of their own are made one there (pe_runtime: expressions.py).
    """
    within = [data_type, *_parts(data_type)]
    for kind in within:
        if isinstance(kind, StringType) and not kind.isUTF8BinaryCollation():
            remedy = (
                "give it a form in which they are the same text, such as lower(...), and collate"
                " UTF8_BINARY, in an operator before the region"
            )
            return f"in collation {kind.collation}", remedy
    remedy = "select what tells keys apart as columns of their own in an operator before the region"
    if any(isinstance(kind, MapType) for kind in within):
        return "that has a map, whose entries have no order", remedy
    if any(isinstance(kind, FloatType | DoubleType) for kind in within[1:]):
        return f"as {data_type.simpleString()}, in which 0.0 and -0.0 are equal", remedy
    return None


def _parts(data_type: DataType) -> list[DataType]:
    """Return the types that a type is made of, at any depth."""
    if isinstance(data_type, StructType):
        direct = [field.dataType for field in data_type.fields]
    elif isinstance(data_type, ArrayType):
        direct = [data_type.elementType]
    elif isinstance(data_type, MapType):
        direct = [data_type.keyType, data_type.valueType]
    else:
        direct = []
    return [kind for part in direct for kind in (part, *_parts(part))]


def _mixed_keys(
    graph: Graph, region: RegionNode, schemas: Mapping[str, StructType]
) -> Iterator[ApplicationError]:
    """Yield the key columns that have another type in one entering stream than in another.

    Records go by their keys' texts (docs/develop/contracts.md, "Kafka"), and equal values of
    several types, such as 1 and 1.0, have several: a join would never see them in one channel.
    """
    for column in region.key:
        first: tuple[str, DataType] | None = None
        for stream, operator in graph.entering(region.name):
            if stream not in schemas or column not in schemas[stream].names:
                continue
            kind = schemas[stream][column].dataType
            first = first or (stream, kind)
            if _form(kind) != _form(first[1]):
                yield SchemaMismatch(
                    operator.location,
                    f"streams {first[0]!r} and {stream!r} enter region {region.name!r} with the"
                    f" key column {column} as {first[1].simpleString()} and as"
                    f" {kind.simpleString()}, so equal keys would go to different channels",
                    "cast it to one type in an operator before the region",
                )


def _form(data_type: DataType) -> Any:
    """Return what is the same for types in which equal values have equal texts."""
    if isinstance(data_type, IntegralType):
        return 0
    if isinstance(data_type, DecimalType):
        return data_type.scale
    return "text" if isinstance(data_type, StringType | CharType | VarcharType) else data_type


def _missing(columns: Any, schema: StructType) -> str:
    return ", ".join(column for column in columns if column not in schema.names)


def _nodes(node: Any) -> Iterator[Any]:
    yield node
    for child in _children(node):
        yield from _nodes(child)


def _children(node: Any) -> list[Any]:
    children = node.children()
    return [children.apply(index) for index in range(children.size())]


def _analyzed(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution().analyzed()


def _checker(spark: SparkSession) -> Any:
    return _jvm(spark).org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker


def _jvm(spark: SparkSession) -> Any:
    return spark._jvm
