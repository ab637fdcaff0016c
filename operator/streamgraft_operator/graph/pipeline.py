"""The pipeline as a whole."""

from collections.abc import Mapping
from dataclasses import replace

from streamgraft_common import names
from streamgraft_common.adl import Adl
from streamgraft_common.joint import apart
from streamgraft_common.port_labels import PortLabel
from streamgraft_common.resources import ProcessingElementSettings
from streamgraft_operator.graph.fusion import fuse
from streamgraft_operator.graph.logical import LogicalModel, logical_model
from streamgraft_operator.graph.metadata import planned_pes, port_labels
from streamgraft_operator.graph.model import (
    GraphError,
    JobContext,
    PlannedRegion,
    Topology,
)
from streamgraft_operator.graph.ports import Ports, repeating_operators
from streamgraft_operator.graph.shares import divided
from streamgraft_operator.graph.sizing import Means, sized
from streamgraft_operator.graph.topology import Block, blocks
from streamgraft_operator.graph.transforms import without_dead_operators
from streamgraft_operator.graph.upstream import above_regions

LARGEST_PES = 20_000
"""With all regions at their max_width."""


def topology_of(adl: Adl, context: JobContext, widths: Mapping[str, int]) -> Topology:
    """Return the topology of a job, with regions as wide as `widths` says (by region name).

    A region that is not in `widths` has its own start width. Raises GraphError.
    """
    wide = region_widths(adl, widths)
    model = without_dead_operators(logical_model(adl))
    _check_services(adl, model)
    means = Means(context.settings, context.resources, region_widths(adl, context.first_widths))
    stages = fuse(model, sized(model, context.fusion, means))
    numbered = blocks(stages, model.regions)
    _check_count(numbered)
    context = replace(context, settings=_settings(adl, context, numbered))
    repeating = repeating_operators(model, stages) | context.repeating
    ports = Ports(model, context, repeating)
    planned = tuple(
        pe
        for block in numbered
        for pe in planned_pes(
            adl, context, ports, block, max(wide[block.region.name], 1) if block.region else None
        )
    )
    firsts = tuple(pe for pe in planned if not pe.channel)
    pes = tuple(pe for pe in planned if pe.region is None or wide[pe.region] > 0)
    above = above_regions(adl)
    labels: dict[str, PortLabel] = {}
    for pe in pes:
        labels |= port_labels(ports, pe)
    joint = {pe.stage_name for pe in firsts if not apart(pe.metadata, adl.operators)}
    return Topology(
        pes=pes,
        stages=firsts,
        regions=tuple(
            PlannedRegion(
                name=names.region_name(context.job, block.region.name),
                region=block.region,
                stage_names=tuple(stage.name for stage in block.stages),
                width=wide[block.region.name],
                first_pe_id=block.first_pe_id,
                upstream=above[block.region.name].regions,
                other_inputs=above[block.region.name].others,
                joint=frozenset(
                    number for number, stage in enumerate(block.stages) if stage.name in joint
                ),
            )
            for block in numbered
            if block.region
        ),
        topics=ports.topics(stages),
        port_labels=labels,
        settings=context.settings,
        repeating=repeating,
    )


def _check_services(adl: Adl, model: LogicalModel) -> None:
    for service in adl.services:
        if service.operator not in model.operators:
            raise GraphError(
                f"service {service.name} is of operator {service.operator}, from which no sink can"
                " be reached, so it runs nowhere: add a sink behind it, or take the service out"
            )


def _check_count(numbered: tuple[Block, ...]) -> None:
    """Raise GraphError if there could be too many PEs: at whatever width, so that none is refused
    on the way there."""
    count = sum(len(b.stages) * (b.region.max_width if b.region else 1) for b in numbered)
    if count > LARGEST_PES:
        raise GraphError(
            f"at the max_width of all regions there would be {count:,} PEs, and a job can have"
            f" {LARGEST_PES:,}: give regions a lower max_width, or have more operators share a PE"
            " (spec.fusion)"
        )


def _settings(
    adl: Adl, context: JobContext, numbered: tuple[Block, ...]
) -> ProcessingElementSettings:
    """Return the settings of all PEs; the job's resources, divided, win over the PEs' own."""
    if context.resources is None:
        return context.settings
    widths = region_widths(adl, context.first_widths)
    count = sum(
        len(block.stages) * (widths[block.region.name] if block.region else 1) for block in numbered
    )
    share = divided(context.resources, count)
    return context.settings.model_copy(update={"resources": share})


def region_widths(adl: Adl, widths: Mapping[str, int]) -> dict[str, int]:
    """Return the widths of all regions: those that are given, else the application's."""
    known = {region.name: region for region in adl.regions}
    if unknown := sorted(widths.keys() - known.keys()):
        has = f"it has {', '.join(known)}" if known else "it has none"
        raise GraphError(f"the application has no region {unknown[0]} ({has})")
    result = {name: widths.get(name, region.width) for name, region in known.items()}
    for name, width in result.items():
        if not 0 <= width <= known[name].max_width:
            raise GraphError(
                f"width {width} of region {name} is not within 0 to {known[name].max_width},"
                " its max_width"
            )
    return result
