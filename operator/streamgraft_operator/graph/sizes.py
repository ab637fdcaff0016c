"""Whether what is written of a graph fits into the objects that hold it. Pure."""

import json
from collections.abc import Collection, Iterator

from streamgraft_common.port_labels import document
from streamgraft_common.resources import SavedStage
from streamgraft_operator.graph.model import GraphError, Topology

LARGEST_BYTES = 1_000_000
"""A ConfigMap has room for 1 MiB, and etcd for 1.5 MiB of any object."""
_LONGER_IDS = 8
"""Characters by which the label of a late channel is longer than that of the first."""


def check_sizes(topology: Topology, stages: Collection[SavedStage]) -> None:
    """Raise GraphError if an object of the job would be too large; `stages`: the topology's."""
    for what, size in _sizes(topology, stages):
        check_size(what, size, ", or choose another fusion (spec.fusion)")


def check_size(what: str, size: int, remedy: str = "") -> None:
    """Raise GraphError if that is too large for an object; `remedy`: what else would help."""
    if size > LARGEST_BYTES:
        raise GraphError(
            f"{what} takes {size // 1000:,} kB, and Kubernetes has room for"
            f" {LARGEST_BYTES // 1000:,} kB in an object: divide the application into several"
            f" that share streams (app.export, app.import_stream){remedy}"
        )


def _sizes(topology: Topology, stages: Collection[SavedStage]) -> Iterator[tuple[str, int]]:
    noted = json.dumps([stage.to_wire() for stage in stages])
    yield "what is noted of the job's graph", len(noted) + _largest_labels(topology)
    for pe in topology.stages:
        described = pe.metadata.to_wire().encode()
        yield f"what the PE of {pe.stage_name} is told of the graph", len(described)
    for planned in topology.regions:
        own = [pe for pe in topology.stages if pe.region == planned.region.name]
        topics = [sorted({port.topic for port in pe.metadata.inputs}) for pe in own]
        size = len(json.dumps([topics, planned.region.model_dump(mode="json")]))
        yield f"what is noted of region {planned.region.name}", size


def _largest_labels(topology: Topology) -> int:
    """Return the size of the port labels with all regions at their max_width: none is to be too
    wide for them."""
    max_widths = {planned.region.name: planned.region.max_width for planned in topology.regions}
    copies = {pe.pe_id: max_widths[pe.region] if pe.region else 1 for pe in topology.stages}
    return sum(
        copies[place.pe] * (len(document({name: place})) + _LONGER_IDS)
        for name, place in topology.port_labels.items()
        if place.pe in copies
    )
