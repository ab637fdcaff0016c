"""Operators written behind a region that its channels do as well: that spares a PE, and a hop.

A row is treated alike wherever it is treated, if no other row decides about it. So a sink of the
job's own brokers joins the region whose stream it reads, and so do operators without state up to
such sinks. What would make channels slower or less robust stays outside: Python, other brokers,
other nodes.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Set
from dataclasses import replace

from streamgraft._graph import Graph, OperatorNode
from streamgraft_common.adl import Placement
from streamgraft_common.downstream import behind


def joined(
    graph: Graph, staying: Set[str], takes: Callable[[OperatorNode], bool]
) -> dict[str, str]:
    """Return the region that operators outside of regions join, by operator.

    `staying`: operators that don't, as those with state. `takes`: whether the plan of an operator's
    function takes rows one by one, in the JVM.
    """
    producers, regions = graph.producers(), dict[str, str]()
    readers = Counter(stream for operator in graph.operators for stream in {*operator.inputs})
    for operator in graph.upstream_first():
        if not _may_join(operator) or operator.name in staying:
            continue
        (stream,) = operator.inputs
        producer = producers[stream]
        region = regions.get(producer.name, producer.region)
        if region is None or not _cut_together(graph, operator.name, producer.name):
            continue
        alone = readers[stream] == 1
        if operator.kind == "function":
            fits = alone and _goes_along(operator, producer) and takes(operator)
        else:
            fits = not producer.real_time or (alone and _writes_alike(operator, producer))
        if fits:
            regions[operator.name] = region
    return _up_to_sinks(graph, regions)


def placed(graph: Graph, regions: Mapping[str, str]) -> Graph:
    """Return the graph with operators in these regions."""
    operators = [
        replace(operator, region=regions.get(operator.name, operator.region))
        for operator in graph.operators
    ]
    return replace(graph, operators=operators)


def torn(graph: Graph, regions: Mapping[str, str], groups: Mapping[str, int]) -> set[str]:
    """Return the operators that joined a region and can't share a plan with what they read: a hop
    within the region would be no gain. `groups`: fusion groups of the operators as placed."""
    producers = graph.producers()
    by_name = {operator.name: operator for operator in graph.operators}
    return {
        name
        for name in regions
        if any(groups[producers[item].name] != groups[name] for item in by_name[name].inputs)
    }


def _up_to_sinks(graph: Graph, regions: Mapping[str, str]) -> dict[str, str]:
    """Return the operators of which all that is behind them joins, too; else no PE is spared."""
    outside = {operator.name for operator in graph.operators if operator.name not in regions}
    return {
        operator.name: regions[operator.name]
        for operator in graph.operators
        if operator.name in regions and not behind(graph.operators, {operator.name}) & outside
    }


def _may_join(operator: OperatorNode) -> bool:
    if operator.region is not None or operator.apart or len(operator.inputs) != 1:
        return False
    if operator.kind == "kafka-sink":
        kafka = operator.kafka
        return kafka is not None and kafka.bootstrap_servers is None and kafka.encoding is None
    ordinary = operator.restartable and operator.placement == Placement()
    return operator.kind == "function" and ordinary


def _goes_along(function: OperatorNode, producer: OperatorNode) -> bool:
    """Return whether both are in one mode, and in real time written in one way."""
    if function.real_time != producer.real_time:
        return False
    return not function.real_time or function.delivery == producer.delivery


def _writes_alike(sink: OperatorNode, producer: OperatorNode) -> bool:
    """Return whether a plan in real-time mode, which writes in one way, takes the sink."""
    kafka = sink.kafka
    return kafka is not None and not kafka.options and kafka.delivery == producer.delivery


def _cut_together(graph: Graph, *names: str) -> bool:
    """Return whether operators belong to the same consistent region, or none of them to any."""
    members = [set(graph.members(region)) for region in graph.consistent_regions]
    return all(len(found.intersection(names)) in (0, len(names)) for found in members)
