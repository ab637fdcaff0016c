"""From a planned graph to the application description (ADL)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from streamgraft._analysis import Analysis
from streamgraft._application import Application
from streamgraft._code import hashes
from streamgraft._graph import ConsistentRegionNode, Graph, OperatorNode, RegionNode
from streamgraft_common import VERSION, adl


def describe(application: Application, analysis: Analysis, module: Path, variable: str) -> adl.Adl:
    """Return the description of an application, held in `variable` of the module's file."""
    graph, folder = application.graph, module.parent
    codes = hashes(all_functions(application), module, variable)
    return adl.Adl(
        name=application.name,
        built_by=VERSION,
        module=module.stem,
        application=variable,
        operators=[
            _operator(item, graph, analysis, folder, codes.get(item.name))
            for item in graph.upstream_first()
        ],
        streams=[
            adl.Stream(
                name=stream, producer=operator.name, schema=analysis.schemas[stream].jsonValue()
            )
            for operator in graph.upstream_first()
            for stream in operator.outputs
        ],
        regions=[_region(item, graph, analysis, folder) for item in graph.regions],
        consistent_regions=[
            consistent_region(item, graph, folder) for item in graph.consistent_regions
        ],
        services=[declared for _, declared in graph.services],
        host_pools=[declared for _, declared in graph.host_pools],
        parameters={item.name: item.default for item in application.parameters.values()},
        pe=adl.PeDefaults(
            trigger_seconds=application.trigger_seconds, spark_conf=application.spark_conf
        ),
    )


def all_functions(application: Application) -> dict[str, list[Callable[..., Any]]]:
    """Return the functions of operators, with those that sinks have for cuts."""
    cuts = application.cut_functions
    return {
        name: [function, *cuts.get(name, {}).values()]
        for name, function in application.functions.items()
    }


def _endpoint(node: OperatorNode, analysis: Analysis) -> adl.KafkaEndpoint | None:
    if node.kafka is None or node.name not in analysis.required:
        return node.kafka
    return node.kafka.model_copy(update={"required": analysis.required[node.name]})


def _operator(
    node: OperatorNode, graph: Graph, analysis: Analysis, folder: Path, code: str | None
) -> adl.Operator:
    return adl.Operator(
        name=node.name,
        kind=node.kind,
        inputs=list(node.inputs),
        outputs=list(node.outputs),
        region=analysis.regions.get(node.name, node.region),
        kafka=_endpoint(node, analysis),
        split=list(node.split),
        exported=node.exported,
        imported=node.imported,
        function=node.name if node.function else None,
        code=code,
        stateful=node.name in analysis.stateful,
        state=analysis.state.get(node.name),
        parameters=analysis.parameters.get(node.name, {}),
        joint_state=node.name in analysis.joint_state,
        event_time=node.name in analysis.watermarked,
        output_mode=node.output_mode,
        placement=node.placement,
        real_time=node.real_time,
        delivery=node.delivery,
        fusion_group=analysis.groups[node.name],
        restartable=node.restartable,
        commits=any(item.sink == node.name for item in graph.cut_functions),
        location=node.location.relative_to(folder),
    )


def consistent_region(
    node: ConsistentRegionNode, graph: Graph, folder: Path
) -> adl.ConsistentRegion:
    """Return the description of a consistent region."""
    settings: dict[str, Any] = {
        "roll_back_on": "damage" if graph.all_commits(node) else "never",
        **node.settings,
    }
    return adl.ConsistentRegion(
        name=node.name,
        operators=graph.members(node),
        location=node.location.relative_to(folder),
        **settings,
    )


def _region(node: RegionNode, graph: Graph, analysis: Analysis, folder: Path) -> adl.Region:
    return adl.Region(
        name=node.name,
        key=list(node.key),
        width=node.width,
        max_width=node.max_width,
        autoscaling=_autoscaling(node, graph, analysis),
        placement=node.placement,
        location=node.location.relative_to(folder),
    )


def _autoscaling(node: RegionNode, graph: Graph, analysis: Analysis) -> adl.Autoscaling | None:
    """Return what a region asks for: what joined it weighs as much as what it stands behind."""
    if node.autoscaling is None:
        return None
    weights, producers = dict(node.autoscaling.utilization_weights), graph.producers()
    for operator in graph.upstream_first():
        if analysis.regions.get(operator.name) == node.name:
            before = producers[operator.inputs[0]].name
            if before in weights:
                weights[operator.name] = weights[before]
    return node.autoscaling.model_copy(update={"utilization_weights": weights})
