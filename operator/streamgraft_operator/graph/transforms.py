"""Step 2, transforms: drop what nobody uses, and replicate parallel regions.

Dead operators go first. The parallel expansion is applied to the fused stages of a region rather
than to its operators: replicas would be fused alike anyway, and this way nothing but the number of
replicas can depend on a width.
"""

from dataclasses import dataclass

from streamgraft_operator.graph.fusion import Stage
from streamgraft_operator.graph.logical import LogicalModel, connect
from streamgraft_operator.graph.model import GraphError


@dataclass(frozen=True)
class Replica:
    """One copy of a stage."""

    stage: Stage
    channel: int | None
    """None outside of regions."""


def without_dead_operators(model: LogicalModel) -> LogicalModel:
    """Return the model without operators from which no sink can be reached.

    Spark would not run them either, as nothing asks for their rows.
    """
    alive: set[str] = set()
    for operator in reversed(list(model.operators.values())):
        readers = (name for stream in operator.outputs for name in model.consumers[stream])
        if operator.kind in ("sink", "kafka-sink", "export") or any(
            name in alive for name in readers
        ):
            alive.add(operator.name)
    if not alive:
        raise GraphError("the application has no sink: nothing would ever leave it")
    for region in model.regions:
        if not any(model.operators[name].region == region.name for name in alive):
            raise GraphError(f"region {region.name} has no operator that leads to a sink")
    kept = [operator for operator in model.operators.values() if operator.name in alive]
    return connect(kept, model.streams, model.regions, model.cut_by)


def expand(stages: tuple[Stage, ...], width: int | None) -> tuple[Replica, ...]:
    """Return the copies of the stages of one region, channel by channel; None: outside."""
    channels = [None] if width is None else range(width)
    return tuple(Replica(stage, channel) for channel in channels for stage in stages)
