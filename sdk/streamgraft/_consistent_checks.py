"""Checks of consistent regions: what they start and end with, and that none meets another."""

from collections.abc import Iterator

from streamgraft._errors import ApplicationError, InvalidArgument
from streamgraft._graph import ConsistentRegionNode, Graph


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
    for name in region.end:
        if name in known and name not in graph.members(region):
            yield InvalidArgument(
                region.location,
                f"consistent region {region.name!r} ends with {name!r}, which its start never"
                " reaches",
                "name an operator that reads, through others, what the start makes",
            )
