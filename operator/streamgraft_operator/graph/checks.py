"""What the graph of a description must be like before it is planned: small enough, and sound.

The build makes no other. A bundle that was made by hand, or by an early release, may hold anything
that the description's model lets through.
"""

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from streamgraft_common.adl import Adl, Operator, Stream
from streamgraft_operator.graph.model import GraphError

LARGEST_OPERATORS = 1_000
LARGEST_STREAMS = 10_000
"""Inputs and outputs of all operators together."""
LARGEST_OBJECTS = 1_000
"""Services, host pools or consistent regions."""

DEEPEST_SCHEMA = 200
"""Levels of a stream's schema, as JSON: what writes it again can't go much deeper."""

_DIVIDE = (
    "let functions do several steps each, or divide the application into several that share"
    " streams (app.export, app.import_stream)"
)
_SHAPES: dict[str, tuple[int | None, int | None]] = {
    "kafka-source": (0, 1),
    "import": (0, 1),
    "split": (1, None),
    "sink": (None, 0),
    "kafka-sink": (None, 0),
    "export": (1, 0),
}
"""How many streams operators of a kind read and make; None: any number."""


def check(adl: Adl) -> None:
    """Raise GraphError if the graph is too large, or not sound."""
    _check_size(adl)
    for what, named in (
        ("operator", adl.operators),
        ("stream", adl.streams),
        ("region", adl.regions),
        ("consistent region", adl.consistent_regions),
        ("service", adl.services),
        ("host pool", adl.host_pools),
    ):
        _reject_repeats(what, (item.name for item in named))
    regions = {region.name for region in adl.regions}
    for operator in adl.operators:
        _check_operator(operator, regions)
    _check_streams(adl)
    _check_consistent_regions(adl)
    for stream in adl.streams:
        _check_schema(stream)


def _check_size(adl: Adl) -> None:
    for what, count, most in (
        ("operators", len(adl.operators), LARGEST_OPERATORS),
        (
            "inputs and outputs of operators",
            sum(len(item.inputs) + len(item.outputs) for item in adl.operators),
            LARGEST_STREAMS,
        ),
        ("services", len(adl.services), LARGEST_OBJECTS),
        ("host pools", len(adl.host_pools), LARGEST_OBJECTS),
        ("consistent regions", len(adl.consistent_regions), LARGEST_OBJECTS),
    ):
        if count > most:
            raise GraphError(
                f"the application has {count:,} {what}, and a job can have {most:,}: {_DIVIDE}"
            )


def _check_operator(operator: Operator, regions: set[str]) -> None:
    where = _place(operator)
    if operator.region is not None and operator.region not in regions:
        raise GraphError(f"{where} is in region {operator.region}, which does not exist")
    if operator.kind in ("kafka-source", "import") and operator.region is not None:
        raise GraphError(
            f"{where} reads Kafka inside region {operator.region}: move the source before the"
            " region, which then splits its stream by key"
        )
    if operator.kind in ("kafka-source", "kafka-sink") and operator.kafka is None:
        raise GraphError(f"{where} does not say which Kafka topic it means")
    if (operator.kind == "export") != (operator.exported is not None) or (
        operator.kind == "import"
    ) != (operator.imported is not None):
        raise GraphError(f"{where} does not say what it exports or imports")
    for does, streams, count in zip(
        ("reads", "makes"),
        (operator.inputs, operator.outputs),
        _SHAPES.get(operator.kind, (None, None)),
        strict=True,
    ):
        if count is not None and len(streams) != count:
            raise GraphError(
                f"{where} {does} {len(streams)} streams, and a {operator.kind} {does} {count}:"
                " build the application anew"
            )


def _check_streams(adl: Adl) -> None:
    streams = {stream.name for stream in adl.streams}
    producers: dict[str, Operator] = {}
    for operator in adl.operators:
        where = _place(operator)
        for stream in operator.outputs:
            if stream not in streams:
                raise GraphError(f"{where} makes stream {stream}, which is not declared")
            if stream in producers:
                raise GraphError(
                    f"{where} makes stream {stream}, as does {_place(producers[stream])}"
                )
            producers[stream] = operator
    for operator in adl.operators:
        if missing := [stream for stream in operator.inputs if stream not in producers]:
            raise GraphError(f"{_place(operator)} reads stream {missing[0]}, which nothing makes")


def _check_consistent_regions(adl: Adl) -> None:
    owners: dict[str, str] = {}
    for region in adl.consistent_regions:
        for name in region.operators:
            if (other := owners.setdefault(name, region.name)) != region.name:
                raise GraphError(
                    f"operator {name} is in consistent regions {other} and {region.name}: end one"
                    " of them before it, or make one region of both"
                )


def _check_schema(stream: Stream) -> None:
    level: list[Any] = [stream.stream_schema]
    for _ in range(DEEPEST_SCHEMA):
        parts = [[*item.values()] if isinstance(item, dict) else item for item in level]
        level = [part for item in parts if isinstance(item, list) for part in item]
    if level:
        raise GraphError(
            f"the schema of stream {stream.name} is more than {DEEPEST_SCHEMA} levels deep: flatten"
            " it"
        )
    try:
        json.dumps(stream.stream_schema, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise GraphError(
            f"the schema of stream {stream.name} has characters that can't be written ({error}):"
            " name its columns otherwise"
        ) from error


def _reject_repeats(what: str, names: Iterable[str]) -> None:
    if repeated := sorted(name for name, count in Counter(names).items() if count > 1):
        raise GraphError(f"there are several {what}s named {repeated[0]}: rename all but one")


def _place(operator: Operator) -> str:
    return f"operator {operator.name}" + (f" ({operator.location})" if operator.location else "")
