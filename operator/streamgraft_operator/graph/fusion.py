"""Step 4, fusion: which operators share a PE.

Works on the graph before expansion, so a group is one *stage*: a PE outside of regions, one PE per
channel inside. Groups grow along streams, in topological order, as long as

- all operators of a group are in the same region, or all in none, and in the same fusion group of
  the application description (what Spark can run in one plan);
- their placements don't exclude each other;
- they are of one consistent region at most;
- the groups stay acyclic (a path that leaves a group and comes back would make the PE wait for
  itself);
- no stateful operator of a group is planned twice: Spark plans each path from it to an output, and
  two copies would have two states and twice the cost;
- a `sink` function (foreachBatch) is the only output of its PE, as it commits the PE's batch.

A Kafka endpoint always shares the PE of the operator that it is an endpoint of.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from heapq import heapify, heappop, heappush

from streamgraft_common.adl import Operator
from streamgraft_common.resources import Fusion
from streamgraft_common.restore import keeps_state
from streamgraft_operator.graph.groups import WRITERS, Groups
from streamgraft_operator.graph.logical import LogicalModel
from streamgraft_operator.graph.model import GraphError

Edge = tuple[Operator, Operator]
"""A producer and a consumer of a stream."""


@dataclass(frozen=True)
class Stage:
    """Operators that share a PE, in topological order."""

    name: str
    """That of the operator whose state or positions are its checkpoints: the first with state, or
    else the first. So it does not depend on what else the application has."""
    operators: tuple[str, ...]
    region: str | None

    @cached_property
    def members(self) -> frozenset[str]:
        """The same operators."""
        return frozenset(self.operators)


def fuse(model: LogicalModel, fusion: Fusion) -> tuple[Stage, ...]:
    """Return the stages of a model without dead operators, in topological order.

    Raises GraphError for an impossible count.
    """
    edges = _edges(model)
    groups = _begun(model, fusion, edges)
    if fusion.pe_count is not None:
        _reduce(groups, edges, fusion.pe_count)
    return tuple(map(_stage, groups.sorted()))


def reductions(model: LogicalModel, fusion: Fusion) -> Iterator[str | None]:
    """Yield the region of the two stages that become one, for each step from the most stages that
    `manual` can have to the fewest; of the fusion only `channels` matters."""
    spread = Fusion(type="legacy", channels=fusion.channels)
    edges = _edges(model)
    yield from _joins(_begun(model, spread, edges), edges)


def _begun(model: LogicalModel, fusion: Fusion, edges: list[Edge]) -> Groups:
    """Return the groups before any are joined to make a number."""
    groups = Groups(model)
    for producer, consumer in edges:
        isolated = fusion.channels == "ChannelIsolation" and consumer.region is not None
        wanted = fusion.type == "automatic" or isolated
        if wanted or _is_endpoint(model, producer, consumer):
            first, second = groups.of(producer), groups.of(consumer)
            if groups.joinable(first, second):
                groups.join(first, second)
    return groups


def _reduce(groups: Groups, edges: list[Edge], count: int) -> None:
    """Join groups until there are `count`."""
    if count > groups.count:
        raise GraphError(
            f"fusion.peCount is {count}, but the application can't be spread over more than"
            f" {groups.count} PEs: choose that or less"
        )
    joins = _joins(groups, edges)
    while groups.count > count:
        try:
            next(joins)
        except StopIteration:
            raise GraphError(
                f"fusion.peCount is {count}, but the application needs at least {groups.count}"
                " PEs (regions, sinks and stateful operators keep others apart): choose that or"
                " more"
            ) from None


def _joins(groups: Groups, edges: list[Edge]) -> Iterator[str | None]:
    """Join groups, always the two that make the smallest one, of several those of the first edge;
    yield the region of each."""
    links: dict[int, dict[int, int]] = defaultdict(dict)
    for number, (producer, consumer) in enumerate(edges):
        first, second = groups.of(producer), groups.of(consumer)
        links[first].setdefault(second, number)
        links[second].setdefault(first, number)
    waiting = [
        (groups.size(first, second), number, first, second)
        for first, others in links.items()
        for second, number in others.items()
        if first < second
    ]
    heapify(waiting)
    while waiting:
        _, _, first, second = heappop(waiting)
        if second not in links.get(first, ()) or groups.excluded(first, second):
            continue
        if groups.repeats_state(first, second):
            del links[first][second], links[second][first]
            continue
        joined = groups.join(first, second)
        for old in (first, second):
            for other, number in links.pop(old).items():
                if other not in (first, second):
                    del links[other][old]
                    links[other][joined] = min(number, links[other].get(joined, number))
                    links[joined][other] = links[other][joined]
        for other, number in links[joined].items():
            heappush(waiting, (groups.size(joined, other), number, joined, other))
        yield groups.region(joined)


def _edges(model: LogicalModel) -> list[Edge]:
    """Return the edges in the order in which they are looked at: sinks last."""
    edges = [
        (model.operators[producer], consumer)
        for consumer in model.operators.values()
        for producer in model.upstream(consumer.name)
    ]
    return sorted(edges, key=lambda edge: edge[1].kind == "sink")


def _is_endpoint(model: LogicalModel, producer: Operator, consumer: Operator) -> bool:
    """Return whether one of the two is but a Kafka endpoint of the other."""
    if consumer.kind in WRITERS:
        return True
    readers = {name for stream in producer.outputs for name in model.consumers[stream]}
    return producer.kind in ("kafka-source", "import") and len(readers) == 1


def _stage(members: list[Operator]) -> Stage:
    first = next(filter(keeps_state, members), members[0])
    return Stage(first.name, tuple(item.name for item in members), first.region)
