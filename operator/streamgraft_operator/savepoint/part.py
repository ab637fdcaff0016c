"""What of a job's graph a savepoint is of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from streamgraft_common.resources import SavedStage, SavepointSpec, SavepointStatus
from streamgraft_common.restore import stage_of
from streamgraft_operator.application.expansion import Expansion
from streamgraft_operator.graph.model import PlannedPe
from streamgraft_operator.graph.stages import first_pes, inner_topics


@dataclass(frozen=True)
class Part:
    """Stages that are saved, or rolled back, together.

    What they read from outside of the part is never at its end: only topics that one of them writes
    count as their inputs.
    """

    stages: tuple[SavedStage, ...]
    """Upstream first."""
    bundle_digest: str
    expansion: Expansion | None = None
    """What it was planned from."""
    inner_topics: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Stage → topics that it reads from another one, with their partitions."""
    upstream: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Stage → those whose output it reads."""
    commits: frozenset[str] = frozenset()
    """Stages with a sink that makes final what is in a cut."""


def planned_part(expansion: Expansion, wanted: SavepointSpec) -> Part:
    """Return what is to be saved of a graph."""
    planned, adl = wanted_pes(expansion, wanted), expansion.bundle.adl
    between, made = topics_between(planned), _made_by(planned)
    sinks = {item.name for item in adl.operators if item.commits}
    cut = wanted.consistent_region is not None
    return Part(
        stages=tuple(stage_of(pe.metadata, adl) for pe in planned),
        bundle_digest=expansion.bundle.digest,
        expansion=expansion,
        inner_topics=between,
        upstream={
            stage: frozenset(made[topic] for topic in topics)
            for stage, topics in between.items()
            if wanted.region is None
        },
        commits=frozenset(
            pe.stage_name for pe in planned if cut and not sinks.isdisjoint(pe.metadata.operators)
        ),
    )


def begun_part(status: SavepointStatus) -> Part:
    """Return what a rollback has begun with; it puts copies in the place of their checkpoints, for
    which nothing else need be known."""
    return Part(stages=tuple(status.stages), bundle_digest=status.bundle_digest)


def wanted_pes(expansion: Expansion, wanted: SavepointSpec) -> list[PlannedPe]:
    """Return one PE of each stage of what is to be saved, upstream first."""
    return [pe for pe in first_pes(expansion.topology) if _is_wanted(pe, wanted)]


def topics_between(planned: Sequence[PlannedPe]) -> dict[str, dict[str, int]]:
    """Return, of each stage, the topics with their partitions that it reads from another one."""
    made = _made_by(planned)
    return {
        pe.stage_name: {
            topic: partitions for topic, partitions in inner_topics(pe).items() if topic in made
        }
        for pe in planned
    }


def _made_by(planned: Sequence[PlannedPe]) -> dict[str, str]:
    """Return the topics that PEs write, each with the stage that does."""
    return {port.topic: pe.stage_name for pe in planned for port in pe.metadata.outputs}


def _is_wanted(pe: PlannedPe, wanted: SavepointSpec) -> bool:
    """Return whether a PE belongs to what is to be saved."""
    if wanted.consistent_region is not None:
        return not set(pe.metadata.operators).isdisjoint(wanted.operators)
    return wanted.region in (None, pe.metadata.region)
