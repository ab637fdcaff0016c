"""Step 4, fusion: which operators share a PE.

Works on the graph before expansion, so a group is one *stage*: a PE outside of regions, one PE per
channel inside. Groups grow along streams, in topological order, as long as

- all operators of a group are in the same region, or all in none, and in the same fusion group of
  the application description (what Spark can run in one plan);
- their placements don't exclude each other;
- the groups stay acyclic (a path that leaves a group and comes back would make the PE wait for
  itself);
- no stateful operator of a group is planned twice: Spark plans each path from it to an output, and
  two copies would have two states and twice the cost;
- a `sink` function (foreachBatch) is the only output of its PE, as it commits the PE's batch.

A Kafka endpoint always shares the PE of the operator that it is an endpoint of.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from streamgraft_common.adl import Operator
from streamgraft_common.resources import Fusion
from streamgraft_common.restore import keeps_state
from streamgraft_operator.graph.logical import LogicalModel
from streamgraft_operator.graph.model import GraphError
from streamgraft_operator.graph.placement import combined

WRITERS = ("kafka-sink", "export")
"""Kinds that write their input to a topic."""
Group = frozenset[str]
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


def fuse(model: LogicalModel, fusion: Fusion) -> tuple[Stage, ...]:
    """Return the stages in topological order. Raises GraphError for an impossible count."""
    groups = _Groups(model)
    edges = sorted(_edges(model), key=lambda edge: edge[1].kind == "sink")
    for producer, consumer in edges:
        isolated = fusion.channels == "ChannelIsolation" and consumer.region is not None
        wanted = fusion.type == "automatic" or isolated
        if wanted or _is_endpoint(model, producer, consumer):
            groups.join(producer.name, consumer.name)
    if fusion.pe_count is not None:
        _reduce(groups, edges, fusion.pe_count)
    return groups.stages()


def _reduce(groups: "_Groups", edges: list[Edge], count: int) -> None:
    """Join groups, always the two that make the smallest one, until there are `count`."""
    if count > groups.count:
        raise GraphError(
            f"fusion.peCount is {count}, but the application can't be spread over more than"
            f" {groups.count} PEs: choose that or less"
        )
    while groups.count > count:
        joinable = [edge for edge in edges if groups.joined(edge[0].name, edge[1].name)]
        if not joinable:
            raise GraphError(
                f"fusion.peCount is {count}, but the application needs at least {groups.count}"
                " PEs (regions, sinks and stateful operators keep others apart): choose that or"
                " more"
            )
        sizes = [len(groups.union(edge[0].name, edge[1].name)) for edge in joinable]
        producer, consumer = joinable[sizes.index(min(sizes))]
        groups.join(producer.name, consumer.name)


def _edges(model: LogicalModel) -> Iterator[Edge]:
    for consumer in model.operators.values():
        for producer in model.upstream(consumer.name):
            yield model.operators[producer], consumer


def _is_endpoint(model: LogicalModel, producer: Operator, consumer: Operator) -> bool:
    """Return whether one of the two is but a Kafka endpoint of the other."""
    if consumer.kind in WRITERS:
        return True
    readers = {name for stream in producer.outputs for name in model.consumers[stream]}
    return producer.kind in ("kafka-source", "import") and len(readers) == 1


class _Groups:
    """The partition of the operators, begun with one group for each."""

    def __init__(self, model: LogicalModel) -> None:
        self._model = model
        self._of: dict[str, Group] = {name: frozenset([name]) for name in model.operators}

    @property
    def count(self) -> int:
        """Number of groups."""
        return len(set(self._of.values()))

    def union(self, first: str, second: str) -> Group:
        """Return the operators of the groups of two."""
        return self._of[first] | self._of[second]

    def join(self, first: str, second: str) -> None:
        """Make one group of two, unless a rule forbids it."""
        if joined := self.joined(first, second):
            self._of = joined

    def joined(self, first: str, second: str) -> dict[str, Group] | None:
        """Return the partition with two groups made one; None if they are, or a rule forbids it."""
        merged = self.union(first, second)
        operators = [self._model.operators[name] for name in merged]
        places = {(operator.region, operator.fusion_group) for operator in operators}
        if self._of[first] == self._of[second] or len(places) > 1:
            return None
        if combined(operator.placement for operator in operators) is None:
            return None
        if not self._lone_sink(merged) or self._repeats_state(merged):
            return None
        joined = {**self._of, **dict.fromkeys(merged, merged)}
        return joined if len(self._sorted(joined)) == len(set(joined.values())) else None

    def stages(self) -> tuple[Stage, ...]:
        """Return the groups as stages."""
        return tuple(self._stage(group) for group in self._sorted(self._of))

    def _stage(self, group: Group) -> Stage:
        members = [item for name, item in self._model.operators.items() if name in group]
        first = next(filter(keeps_state, members), members[0])
        return Stage(first.name, tuple(item.name for item in members), first.region)

    def _sorted(self, groups: dict[str, Group]) -> list[Group]:
        """Sort groups topologically; those on a cycle, and after it, are missing."""
        rest = list(dict.fromkeys(groups[name] for name in self._model.operators))
        upstream = {group: self._upstream(groups, group) for group in rest}
        result: list[Group] = []
        while ready := next((group for group in rest if upstream[group] <= set(result)), None):
            result.append(ready)
            rest.remove(ready)
        return result

    def _upstream(self, groups: dict[str, Group], group: Group) -> set[Group]:
        return {groups[up] for name in group for up in self._model.upstream(name)} - {group}

    def _lone_sink(self, group: Group) -> bool:
        operators = [self._model.operators[name] for name in group]
        sinks = sum(operator.kind == "sink" for operator in operators)
        return not sinks or (sinks == 1 and not any(self._outputs(group, operators)))

    def _outputs(self, group: Group, operators: Iterable[Operator]) -> Iterator[str]:
        for operator in operators:
            if operator.kind in WRITERS:
                yield operator.name
            yield from (stream for stream in operator.outputs if self._leaves(group, stream))

    def _leaves(self, group: Group, stream: str) -> bool:
        """Return whether a stream is written by the group: to Kafka or to another group."""
        readers = (self._model.operators[name] for name in self._model.consumers[stream])
        return any(op.kind in WRITERS or op.name not in group for op in readers)

    def _repeats_state(self, group: Group) -> bool:
        """Return whether several paths lead from a stateful operator to the group's outputs.

        A stream that is written counts as one path, however many topics it, or parts of it behind
        a split, go to: they take one pass over its rows.
        """
        paths: dict[str, int] = {}
        for name in reversed(list(self._model.operators)):
            operator = self._model.operators[name]
            if name not in group or operator.kind == "split":
                continue
            paths[name] = int(operator.kind == "sink")
            for stream in operator.outputs:
                parts = list(self._parts(group, stream))
                paths[name] += any(self._leaves(group, part) for part in parts)
                paths[name] += sum(
                    self._model.operators[reader].inputs.count(part) * paths[reader]
                    for part in parts
                    for reader in self._model.consumers[part]
                    if reader in paths
                )
            if operator.stateful and paths[name] > 1:
                return True
        return False

    def _parts(self, group: Group, stream: str) -> Iterator[str]:
        """Yield a stream, and the streams that splits of the group make of it."""
        yield stream
        for reader in self._model.consumers[stream]:
            if reader in group and self._model.operators[reader].kind == "split":
                for part in self._model.operators[reader].outputs:
                    yield from self._parts(group, part)
