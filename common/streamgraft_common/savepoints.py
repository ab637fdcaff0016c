"""Which state of a savepoint a stage of a job takes: by names, never by position. Pure.

Command line, operator and PEs ask the same functions, so what is refused is refused before anything
is stopped.
"""

from collections.abc import Collection, Iterable

from streamgraft_common.adl import Adl
from streamgraft_common.pe_metadata import PeMetadata
from streamgraft_common.resources.savepoint import FORMAT, SavedInput, SavedStage, SavepointStatus


class NotRestorable(Exception):
    """A savepoint doesn't fit what is to start from it; the message says why, and what to do."""


def stage_of(metadata: PeMetadata, adl: Adl) -> SavedStage:
    """Return what is remembered of a stage; the same for all of its PEs."""
    operators = {operator.name: operator for operator in adl.operators}
    region = next((item for item in adl.regions if item.name == metadata.region), None)
    return SavedStage(
        name=metadata.stage_name,
        shards=metadata.shard_count,
        region=metadata.region,
        key=list(region.key) if region else [],
        operators=metadata.operators,
        stateful=[
            name
            for name in metadata.operators
            if operators[name].stateful or operators[name].kind == "source"
        ],
        inputs=[
            SavedInput(stream=port.stream, topic=port.topic, external=port.external)
            for port in metadata.inputs
        ],
    )


def match(saved: Iterable[SavedStage], stage: SavedStage) -> SavedStage | None:
    """Return the saved stage whose checkpoints a stage starts from; None: it starts empty.

    Raises NotRestorable if the stage shares operators with saved ones, but is not the same query.
    """
    carried = _carried(stage)
    found = [item for item in saved if carried & _carried(item)]
    if not found:
        return None
    if len(found) > 1:
        raise NotRestorable(
            f"stage {stage.name} unites the stages {_listed(item.name for item in found)} of the"
            " savepoint, whose states can't be united: keep the fusion as it was"
        )
    (old,) = found
    for what, before, now in (
        ("operators with state", old.stateful, stage.stateful),
        ("inputs", _streams(old), _streams(stage)),
    ):
        if before != now:
            raise NotRestorable(
                f"stage {stage.name} has the {what} {_listed(now)}, its state in the savepoint is"
                f" of {_listed(before)} (stage {old.name}): one query's checkpoint can't be divided"
                " or added to; keep these operators and their fusion as they were"
            )
    if old.shards != stage.shards or old.key != stage.key:
        raise NotRestorable(
            f"stage {stage.name} has {stage.shards} key groups by {_listed(stage.key)}, the"
            f" savepoint {old.shards} by {_listed(old.key)}: its state is partitioned by them"
        )
    return old


def dropped(saved: Collection[SavedStage], stages: Collection[SavedStage]) -> list[SavedStage]:
    """Return the saved stages with state, or positions in sources, that no stage takes."""
    taken = {item.name for stage in stages if (item := match(saved, stage))}
    return [item for item in saved if _carried(item) and item.name not in taken]


def check_complete(name: str, status: SavepointStatus) -> None:
    """Raise NotRestorable if a savepoint can't be restored by this release at all."""
    if status.phase != "Completed":
        why = f": {status.message}" if status.message else ""
        raise NotRestorable(f"savepoint {name} is not complete, but {status.phase}{why}")
    if status.format > FORMAT:
        raise NotRestorable(
            f"savepoint {name} has format {status.format}, this release reads up to {FORMAT}:"
            " restore it with the release that wrote it, or a newer one"
        )


def check(
    name: str, status: SavepointStatus, stages: Collection[SavedStage], *, drop: bool = False
) -> None:
    """Raise NotRestorable if a job of these stages can't start from a savepoint.

    `drop`: whether state that no stage takes may be left behind.
    """
    check_complete(name, status)
    if (left := dropped(status.stages, stages)) and not drop:
        what = _listed(operator for item in left for operator in sorted(_carried(item)))
        raise NotRestorable(
            f"no operator takes the state of {what} in savepoint {name}: keep the operators' names,"
            " or leave it behind with --allow-dropped-state"
        )


def _carried(stage: SavedStage) -> set[str]:
    """Return the operators with state and the outside streams: what a fresh start would lose."""
    return {*stage.stateful, *(item.stream for item in stage.inputs if item.external)}


def _streams(stage: SavedStage) -> list[str]:
    return [item.stream for item in stage.inputs]


def _listed(items: Iterable[str]) -> str:
    return ", ".join(items) or "none"
