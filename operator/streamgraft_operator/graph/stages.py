"""The stages of a topology in the order in which records flow. Pure."""

from streamgraft_common.adl import Adl
from streamgraft_common.resources import SavedStage
from streamgraft_common.restore import stage_of
from streamgraft_operator.graph.model import PlannedPe, Topology


def first_pes(topology: Topology) -> list[PlannedPe]:
    """Return one PE of each stage, upstream first."""
    left = list(topology.stages)
    done: list[PlannedPe] = []
    while left:
        made = {port.topic for pe in left for port in pe.metadata.outputs}
        ready = [pe for pe in left if not made & inner_topics(pe).keys()]
        done += ready
        left = [pe for pe in left if pe not in ready]
    return done


def inner_topics(pe: PlannedPe) -> dict[str, int]:
    """Return the topics of the job's own that a PE reads, with their partitions."""
    return {port.topic: port.partitions or 0 for port in pe.metadata.inputs if not port.external}


def saved_stages(topology: Topology, adl: Adl) -> list[SavedStage]:
    """Return the stages as a savepoint remembers them, upstream first."""
    return [stage_of(pe.metadata, adl) for pe in first_pes(topology)]
