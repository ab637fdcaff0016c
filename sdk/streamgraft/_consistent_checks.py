"""Checks of consistent regions: what they start and end with, and that none meets another."""

import inspect
from collections.abc import Iterator

from streamgraft._errors import ApplicationError, InvalidArgument
from streamgraft._graph import ConsistentRegionNode, Graph
from streamgraft._location import Location


def consistent_region_errors(graph: Graph) -> Iterator[ApplicationError]:
    """Yield what is wrong with the consistent regions."""
    owners: dict[str, str] = {}
    for region in graph.consistent_regions:
        yield from _border_errors(region, graph)
        for operator in graph.members(region):
            if (other := owners.setdefault(operator, region.name)) != region.name:
                yield InvalidArgument(
                    region.location,
                    f"operator {operator!r} is in consistent regions {other!r} and {region.name!r}",
                    "end one of them before it, or make one region of both",
                )


def cut_function_errors(graph: Graph) -> Iterator[ApplicationError]:
    """Yield what is wrong with what sinks do at cuts."""
    sinks = {operator.name for operator in graph.operators if operator.kind == "sink"}
    inside = {name for region in graph.consistent_regions for name in graph.members(region)}
    committing = {item.sink for item in graph.cut_functions if item.moment == "commit"}
    first: dict[tuple[str, str], Location] = {}
    for item in graph.cut_functions:
        what = f"on_{item.moment} of {item.sink!r}"
        if item.sink not in sinks:
            yield InvalidArgument(
                item.location, f"{what}: it is no sink function", "name one of app.sink()"
            )
        elif item.sink not in inside:
            yield InvalidArgument(
                item.location,
                f"{what}: it is in no consistent region, so it is never called",
                "declare app.consistent_region(...) with the sink in it",
            )
        elif item.sink not in committing:
            # An edit that takes on_commit away, and leaves this, would not be seen to lose batches.
            yield InvalidArgument(
                item.location,
                f"{what}: the sink has no on_commit, so nothing that is prepared is ever final",
                "declare app.on_commit, too, or remove this",
            )
        earlier = first.setdefault((item.sink, item.moment), item.location)
        if earlier is not item.location:
            yield InvalidArgument(
                item.location, f"{what} is declared twice, see {earlier}", "remove one of them"
            )
        try:
            inspect.signature(item.function).bind("Cut")
        except TypeError as error:
            yield InvalidArgument(
                item.location, f"{what} is called with a Cut: {error}", "give it one parameter"
            )


def _border_errors(region: ConsistentRegionNode, graph: Graph) -> Iterator[ApplicationError]:
    known = [operator.name for operator in graph.operators]
    if not region.start:
        yield InvalidArgument(
            region.location,
            f"consistent region {region.name!r} has no start",
            "name its first operators",
        )
    for name in (*region.start, *region.end):
        if name not in known:
            yield InvalidArgument(
                region.location,
                f"consistent region {region.name!r} names operator {name!r}, which does not exist",
                f"there are {', '.join(known) or 'none'}",
            )
    members = graph.members(region)
    if members and not any(map(graph.leads_to_a_sink, members)):
        yield InvalidArgument(
            region.location,
            f"no operator of consistent region {region.name!r} leads to a sink: it runs nowhere",
            "add a sink behind it",
        )
    for name in region.end:
        if name in known and name not in members:
            yield InvalidArgument(
                region.location,
                f"consistent region {region.name!r} ends with {name!r}, which its start never"
                " reaches",
                "name an operator that reads, through others, what the start makes",
            )
