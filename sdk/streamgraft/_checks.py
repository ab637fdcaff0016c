"""Checks of the graph that need no Spark: names, wiring, regions, functions."""

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError

from streamgraft._cluster_objects import cluster_object_errors
from streamgraft._consistent_checks import consistent_region_errors, cut_function_errors
from streamgraft._encoded_checks import encoding_errors
from streamgraft._errors import (
    ApplicationError,
    CyclicGraph,
    DuplicateName,
    InvalidArgument,
    InvalidName,
    MisplacedSource,
    MissingSource,
    NestedRegion,
    UnknownStream,
)
from streamgraft._graph import SINKS, SOURCES, Graph, Notice, OperatorNode, RegionNode
from streamgraft._kafka_options import real_time_errors
from streamgraft._location import Location
from streamgraft._serializable import serialization_errors
from streamgraft._signatures import signature_errors
from streamgraft._value_checks import value_errors
from streamgraft_common.adl import Autoscaling
from streamgraft_common.names import MAX_NAME, MAX_PART_NAME

_NAME = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")
_MAX_KEY_GROUPS = 1024


def check(graph: Graph) -> list[ApplicationError]:
    """Return everything that is wrong with the graph, in the order of the lines."""
    errors = [*graph.errors, *_name_errors(graph), *value_errors(graph)]
    if all(isinstance(item.name, str) for item in _names(graph)):  # all else goes by names
        errors += _wiring_errors(graph)
    return sorted(errors, key=lambda error: error.location or graph.location)


def _wiring_errors(graph: Graph) -> list[ApplicationError]:
    duplicates = list(_duplicates(graph))
    return [
        *duplicates,
        *_unknown_streams(graph),
        *(_cycles(graph) if not duplicates else ()),  # with two of a name, a loop may be none
        *(error for region in graph.regions for error in _region_errors(region, graph)),
        *consistent_region_errors(graph),
        *cut_function_errors(graph),
        *cluster_object_errors(graph),
        *_source_errors(graph),
        *encoding_errors(graph),
        *real_time_errors(graph),
        *(error for operator in graph.operators for error in _operator_errors(operator)),
    ]


def notices(graph: Graph) -> list[Notice]:
    """Return what is allowed but probably not meant."""
    consumed = graph.consumed()
    found = [
        Notice(operator.location, f"nothing reads stream {stream!r}")
        for operator in graph.operators
        for stream in operator.outputs
        if stream not in consumed
    ]
    if not any(operator.kind in SINKS for operator in graph.operators):
        found.append(Notice(graph.location, "the application has no sink: it has no effect"))
    return [*found, *_returning(graph)]


def _returning(graph: Graph) -> Iterator[Notice]:
    """Yield the sinks whose records come back by a source."""

    def places(kind: str) -> list[tuple[OperatorNode, tuple[str, str | None]]]:
        return [
            (operator, (operator.kafka.topic, operator.kafka.bootstrap_servers))
            for operator in graph.operators
            if operator.kind == kind and operator.kafka
        ]

    sources = {place: source.name for source, place in places("kafka-source")}
    for sink, place in places("kafka-sink"):
        if place in sources:
            yield Notice(
                sink.location,
                f"sink {sink.name!r} writes topic {place[0]}, which source {sources[place]!r}"
                " reads: its records come back into the application",
            )


@dataclass(frozen=True)
class _Name:
    """A name of something in the graph."""

    what: str
    name: str
    location: Location
    longest: int


def _names(graph: Graph) -> Iterator[_Name]:
    yield _Name("application", graph.name, graph.location, MAX_NAME)
    for region in graph.regions:
        yield _Name("region", region.name, region.location, MAX_PART_NAME)
    for consistent in graph.consistent_regions:
        yield _Name("consistent region", consistent.name, consistent.location, MAX_PART_NAME)
    for operator in graph.operators:
        yield _Name("operator", operator.name, operator.location, MAX_NAME)
        for stream in operator.outputs:
            if stream != operator.name:
                yield _Name("stream", stream, operator.location, MAX_NAME)


def _name_errors(graph: Graph) -> Iterator[ApplicationError]:
    for item in _names(graph):
        if not isinstance(item.name, str) or not _NAME.fullmatch(item.name):
            yield InvalidName(
                item.location,
                f"{item.what} name {item.name!r} is not valid",
                "use lower-case letters, digits and hyphens, beginning with a letter",
            )
        elif len(item.name) > item.longest:
            yield InvalidName(
                item.location,
                f"{item.what} name {item.name!r} is too long",
                f"use at most {item.longest} characters",
            )


def _duplicates(graph: Graph) -> Iterator[ApplicationError]:
    declared: list[tuple[str, str, Location]] = [
        *(("region", region.name, region.location) for region in graph.regions),
        *(
            ("consistent region", region.name, region.location)
            for region in graph.consistent_regions
        ),
        *(("service", item.name, location) for location, item in graph.services),
        *(("host pool", item.name, location) for location, item in graph.host_pools),
        *(("operator", operator.name, operator.location) for operator in graph.operators),
        *(
            ("stream", stream, operator.location)
            for operator in graph.operators
            for stream in operator.outputs
            if stream != operator.name
        ),
    ]
    first: dict[tuple[str, str], Location] = {
        ("stream", operator.name): operator.location
        for operator in graph.operators
        if operator.name in operator.outputs
    }
    for what, name, location in declared:
        if (earlier := first.setdefault((what, name), location)) is not location:
            yield DuplicateName(
                location, f"{what} {name!r} exists already, see {earlier}", "rename one of them"
            )


def _unknown_streams(graph: Graph) -> Iterator[ApplicationError]:
    known = list(graph.producers())
    for operator in graph.operators:
        for stream in operator.inputs:
            if stream not in known:
                close = difflib.get_close_matches(stream, known, n=1)
                yield UnknownStream(
                    operator.location,
                    f"{operator.name!r} reads stream {stream!r}, which does not exist",
                    f"did you mean {close[0]!r}?"
                    if close
                    else f"there are {', '.join(known) or 'none'}",
                )


def _cycles(graph: Graph) -> Iterator[ApplicationError]:
    try:
        graph.upstream_first()
    except CycleError as error:
        loop = [str(name) for name in error.args[1]]
        places = {operator.name: operator.location for operator in graph.operators}
        yield CyclicGraph(
            min(places[name] for name in loop),
            f"the graph has a cycle: {' → '.join(loop)}",
            "no operator may read what depends on its own output",
        )


def _region_errors(region: RegionNode, graph: Graph) -> Iterator[ApplicationError]:
    if region.outer:
        yield NestedRegion(
            region.location,
            f"region {region.name!r} stands inside region {region.outer!r}",
            "regions can't be nested; close the outer one first",
        )
    if not 1 <= region.max_width <= _MAX_KEY_GROUPS:
        yield InvalidArgument(
            region.location,
            f"max_width is {region.max_width}",
            f"use a number from 1 to {_MAX_KEY_GROUPS}",
        )
    elif not 1 <= region.width <= region.max_width:
        yield InvalidArgument(
            region.location,
            f"width is {region.width}",
            f"use a number from 1 to max_width, which is {region.max_width}",
        )
    if not region.key:
        yield InvalidArgument(
            region.location, f"region {region.name!r} has no key", "name the columns to spread by"
        )
    for column in region.key:
        if not isinstance(column, str):
            yield InvalidArgument(
                region.location,
                f"a key column of region {region.name!r} is {column!r}",
                "name a column of the streams that enter it",
            )
    if not any(operator.region == region.name for operator in graph.operators):
        yield InvalidArgument(
            region.location,
            f"region {region.name!r} is empty",
            "declare operators inside it, in the block of `with app.parallel(...):`",
        )
    yield from _autoscaling_errors(region)
    inside = {operator.name for operator in graph.operators if operator.region == region.name}
    yield from _weight_errors(region, inside)


def _weight_errors(region: RegionNode, operators: set[str]) -> Iterator[ApplicationError]:
    weights = region.autoscaling.utilization_weights if region.autoscaling else {}
    if unknown := sorted(weights.keys() - operators):
        yield InvalidArgument(
            region.location,
            f"autoscaling.utilization_weights names {', '.join(unknown)}",
            f"name operators of the region: {', '.join(sorted(operators))}",
        )
    elif operators and not any(weights.get(operator, 1.0) for operator in operators):
        yield InvalidArgument(
            region.location,
            "autoscaling.utilization_weights is 0 for every operator of the region",
            "leave at least one of them out of it, or give it a weight",
        )


def _autoscaling_errors(region: RegionNode) -> Iterator[ApplicationError]:
    if region.autoscaling is None:
        return
    largest = region.autoscaling.max_width or region.max_width
    if largest > region.max_width:
        yield InvalidArgument(
            region.location,
            f"autoscaling.max_width is {largest}",
            f"it can't exceed the region's max_width, which is {region.max_width}",
        )
    if region.autoscaling.min_width > largest:
        yield InvalidArgument(
            region.location,
            f"autoscaling.min_width is {region.autoscaling.min_width}",
            f"it can't exceed the largest width, which is {largest}",
        )
    costs = {
        "autoscaling.max_cost_per_hour": region.autoscaling.max_cost_per_hour,
        "autoscaling.channel_cost_per_hour": region.autoscaling.channel_cost_per_hour,
    }
    yield from _metric_errors(region, region.autoscaling)
    missing = [name for name, value in costs.items() if value is None]
    if len(missing) == 1:
        yield InvalidArgument(
            region.location,
            f"{missing[0]} is not set",
            f"{' and '.join(costs)} limit the width together: set both or neither",
        )


def _metric_errors(region: RegionNode, asked: Autoscaling) -> Iterator[ApplicationError]:
    """Yield what only the demand heeds: asked for here, not where objects of earlier releases are
    read, which may have it."""
    ignored = {
        "mode='advise'": asked.mode == "advise",
        "a period with a min_width": any(item.min_width is not None for item in asked.periods),
    }
    for what, is_asked in ignored.items():
        if is_asked and asked.metric != "demand":
            yield InvalidArgument(
                region.location,
                f"autoscaling has metric={asked.metric!r} and {what}, which it does not heed",
                "leave one of them out: only metric='demand' says a width",
            )


def _source_errors(graph: Graph) -> Iterator[ApplicationError]:
    sources = [operator for operator in graph.operators if operator.kind in SOURCES]
    if not sources:
        yield MissingSource(
            graph.location, "the application has no source", "add app.kafka_source(...)"
        )
    for operator in sources:
        if operator.region:
            yield MisplacedSource(
                operator.location,
                f"source {operator.name!r} stands inside region {operator.region!r}",
                "declare it before the region: its rows are then spread by the region's key",
            )


def _split_errors(operator: OperatorNode) -> Iterator[ApplicationError]:
    if len(operator.inputs) > 1:
        yield InvalidArgument(
            operator.location,
            f"split {operator.name!r} has {len(operator.inputs)} inputs",
            "declare one split per stream, or unite the streams in an operator",
        )
    if not operator.outputs:
        yield InvalidArgument(
            operator.location, f"split {operator.name!r} has no outputs", "name at least one"
        )
    for part in operator.split:
        if not isinstance(part.condition, str):
            yield InvalidArgument(
                operator.location,
                f"the condition of output {part.stream!r} is {part.condition!r}",
                "write it as text, in SQL",
            )


def _operator_errors(operator: OperatorNode) -> Iterator[ApplicationError]:
    if operator.kind not in SOURCES and not operator.inputs:
        yield InvalidArgument(
            operator.location, f"{operator.name!r} has no input", "name the streams that it reads"
        )
    if operator.kind in SINKS and len(operator.inputs) > 1:
        yield InvalidArgument(
            operator.location,
            f"sink {operator.name!r} has {len(operator.inputs)} inputs",
            "declare one sink per stream, or unite the streams in an operator",
        )
    if operator.kind == "split":
        yield from _split_errors(operator)
    yield from signature_errors(operator)
    yield from serialization_errors(operator)
