"""Which operators may come to share a processing element, and whether their output modes agree.

The operator decides at submission what it fuses. It never fuses across the border of a region, so
operators that are connected within one region (or outside of all) are what has to fit together.
"""

from collections.abc import Iterator, Set

from streamgraft._errors import ApplicationError, PlanningFailed
from streamgraft._graph import Graph, OperatorNode


def groups(graph: Graph) -> list[list[OperatorNode]]:
    """Return the operators by connection within a region, each group in the order of the code."""
    producers = graph.producers()
    group_of = {operator.name: [operator] for operator in graph.operators}
    for operator in graph.operators:
        for stream in operator.inputs:
            producer = producers[stream]
            first, second = group_of[producer.name], group_of[operator.name]
            if producer.region == operator.region and first is not second:
                first.extend(second)
                group_of.update((member.name, first) for member in second)
    order = [operator.name for operator in graph.operators]
    distinct = {id(group): group for group in group_of.values()}
    return [sorted(group, key=lambda item: order.index(item.name)) for group in distinct.values()]


def mode_errors(graph: Graph, append_only: Set[str]) -> Iterator[ApplicationError]:
    """Yield operators that need output mode append beside one that needs update.

    A processing element is one Spark query, so it has one output mode.
    """
    for group in groups(graph):
        updating = [operator.name for operator in group if operator.output_mode == "update"]
        for operator in group:
            if updating and operator.name in append_only:
                yield PlanningFailed(
                    operator.location,
                    f"{operator.name!r} needs output mode append, but may share a processing"
                    f" element with {', '.join(updating)} in output mode update",
                    "put one of them into a parallel region of its own",
                )
