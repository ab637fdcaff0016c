"""The stages of a topology in the order in which records flow. Pure."""

from graphlib import TopologicalSorter

from streamgraft_common.adl import Adl
from streamgraft_common.resources import SavedStage
from streamgraft_common.restore import stage_of
from streamgraft_operator.graph.model import PlannedPe, Topology


def first_pes(topology: Topology) -> list[PlannedPe]:
    """Return one PE of each stage, upstream first."""
    stages = topology.stages
    # A topic elsewhere may have the name of one of the job's own.
    makers = {
        port.topic: number
        for number, pe in enumerate(stages)
        for port in pe.metadata.outputs
        if not port.external
    }
    read = ((number, inner_topics(pe)) for number, pe in enumerate(stages))
    sorter = TopologicalSorter(
        {number: {makers[topic] for topic in topics if topic in makers} for number, topics in read}
    )
    sorter.prepare()
    done: list[PlannedPe] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        done += [stages[number] for number in ready]
        sorter.done(*ready)
    return done


def inner_topics(pe: PlannedPe) -> dict[str, int]:
    """Return the topics of the job's own that a PE reads, with their partitions."""
    return {port.topic: port.partitions or 0 for port in pe.metadata.inputs if not port.external}


def saved_stages(topology: Topology, adl: Adl) -> list[SavedStage]:
    """Return the stages as a savepoint remembers them, upstream first."""
    return [stage_of(pe.metadata, adl) for pe in first_pes(topology)]
