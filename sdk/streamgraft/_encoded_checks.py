"""Checks of endpoints whose values are Avro records or messages of Protocol Buffers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from streamgraft._errors import ApplicationError, InvalidArgument, SchemaMismatch
from streamgraft._graph import Graph, OperatorNode
from streamgraft_common.encodings.codecs import codec_of
from streamgraft_common.encodings.registry_access import PASSWORD, SECRET, TOKEN, USER, check_url

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def encoding_errors(graph: Graph) -> Iterator[ApplicationError]:
    """Yield what is not valid of schemas and registries, and endpoints beside real time."""
    for operator in _encoded(graph):
        assert operator.kafka is not None
        assert operator.kafka.encoding is not None
        if operator.kafka.encoding.registry:
            try:
                check_url(operator.kafka.encoding.registry)
            except ValueError as error:
                yield InvalidArgument(
                    operator.location,
                    f"{operator.name!r} has {error}",
                    f"give scheme, host and path, and put credentials into {SECRET}"
                    f" ({USER} and {PASSWORD}, or {TOKEN})",
                )
        try:
            schema_alone = operator.kafka.encoding.model_copy(update={"registry": None})
            codec_of(schema_alone, operator.kafka.topic)
        except ValueError as error:
            yield InvalidArgument(
                operator.location, f"{operator.name!r} has {error}", "give it another schema"
            )
        if fast := [item.name for item in _beside(operator, graph) if item.real_time]:
            yield InvalidArgument(
                operator.location,
                f"{operator.name!r} has format {operator.kafka.format}, which needs Python, and"
                f" {fast[0]!r} is in real time, which takes none",
                "leave out real_time, or use JSON",
            )


def encoded_column_errors(
    graph: Graph, schemas: Mapping[str, StructType]
) -> Iterator[ApplicationError]:
    """Yield sinks whose schema has no place for their stream's columns."""
    for operator in _encoded(graph):
        if operator.kind != "kafka-sink" or operator.inputs[0] not in schemas:
            continue
        assert operator.kafka is not None
        assert operator.kafka.encoding is not None
        schema = schemas[operator.inputs[0]]
        columns = ", ".join(f"{item.name} {item.dataType.simpleString()}" for item in schema)
        codec = codec_of(operator.kafka.encoding, operator.kafka.topic)
        if problem := codec.unfit(schema.jsonValue()["fields"]):
            yield SchemaMismatch(
                operator.location,
                f"sink {operator.name!r} can't write stream {operator.inputs[0]!r}: {problem}",
                f"the stream has {columns}",
            )


def _encoded(graph: Graph) -> list[OperatorNode]:
    return [item for item in graph.operators if item.kafka and item.kafka.encoding]


def _beside(operator: OperatorNode, graph: Graph) -> list[OperatorNode]:
    return [
        item
        for item in graph.operators
        if {*item.outputs} & {*operator.inputs} or {*item.inputs} & {*operator.outputs}
    ]
