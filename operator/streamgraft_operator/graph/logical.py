"""Step 1, the logical model: operators and streams of the application, checked."""

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from streamgraft_common.adl import Adl, Operator, Region, Stream
from streamgraft_operator.graph.checks import check
from streamgraft_operator.graph.model import GraphError


@dataclass(frozen=True)
class LogicalModel:
    """The graph of an application: nodes are operators, edges are streams."""

    operators: Mapping[str, Operator]
    """By name, in topological order; ties are in the order of the application description."""
    streams: Mapping[str, Stream]
    producers: Mapping[str, str]
    """Stream → the operator that makes it."""
    consumers: Mapping[str, tuple[str, ...]]
    """Stream → the operators that read it, once each, in topological order."""
    regions: tuple[Region, ...]
    cut_by: Mapping[str, str]
    """Operator → the consistent region that it is in."""

    def upstream(self, operator: str) -> tuple[str, ...]:
        """Return the producers of an operator's inputs, in the order of the inputs."""
        inputs = self.operators[operator].inputs
        return tuple(dict.fromkeys(self.producers[stream] for stream in inputs))


def logical_model(adl: Adl) -> LogicalModel:
    """Return the logical model of an application. Raises GraphError if it is not sound."""
    check(adl)
    producers = {stream: op.name for op in adl.operators for stream in op.outputs}
    streams = {stream.name: stream for stream in adl.streams}
    cut_by = {name: region.name for region in adl.consistent_regions for name in region.operators}
    return connect(_sorted(adl.operators, producers), streams, tuple(adl.regions), cut_by)


def connect(
    operators: Iterable[Operator],
    streams: Mapping[str, Stream],
    regions: tuple[Region, ...],
    cut_by: Mapping[str, str],
) -> LogicalModel:
    """Return the model of operators that are in topological order."""
    by_name = {operator.name: operator for operator in operators}
    consumers: dict[str, list[str]] = {stream: [] for stream in streams}
    for operator in by_name.values():
        for stream in dict.fromkeys(operator.inputs):
            consumers[stream].append(operator.name)
    return LogicalModel(
        operators=by_name,
        streams=streams,
        producers={stream: op.name for op in by_name.values() for stream in op.outputs},
        consumers={stream: tuple(readers) for stream, readers in consumers.items()},
        regions=regions,
        cut_by=cut_by,
    )


def _sorted(operators: list[Operator], producers: Mapping[str, str]) -> list[Operator]:
    """Sort topologically (Kahn); of those that are ready the first described goes first."""
    awaited: dict[str, int] = {}
    behind: dict[str, list[int]] = {operator.name: [] for operator in operators}
    for number, operator in enumerate(operators):
        upstream = {producers[stream] for stream in operator.inputs}
        awaited[operator.name] = len(upstream)
        for name in upstream:
            behind[name].append(number)
    ready = [number for number, operator in enumerate(operators) if not awaited[operator.name]]
    result: list[Operator] = []
    while ready:  # a heap: ascending numbers are one
        result.append(operators[heapq.heappop(ready)])
        for number in behind[result[-1].name]:
            name = operators[number].name
            awaited[name] -= 1
            if not awaited[name]:
                heapq.heappush(ready, number)
    if len(result) < len(operators):
        stuck = ", ".join(sorted(name for name, count in awaited.items() if count))
        raise GraphError(f"the graph has a cycle among or before these operators: {stuck}")
    return result
