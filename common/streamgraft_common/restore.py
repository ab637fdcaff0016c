"""Which state of a savepoint a stage of a job takes: by names, never by position. Pure.

Command line, operator and PEs ask the same functions, so what is refused is refused before anything
is stopped.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from streamgraft_common import names
from streamgraft_common.adl import Adl, Operator
from streamgraft_common.brokers import addresses
from streamgraft_common.columns import columns_of
from streamgraft_common.key_groups import key_columns, readings
from streamgraft_common.pe_metadata import PeMetadata
from streamgraft_common.resources.savepoint import (
    FORMAT,
    SavedExport,
    SavedInput,
    SavedStage,
    SavedState,
    SavepointStatus,
)
from streamgraft_common.state_plans import plans_of, unproven
from streamgraft_common.state_tables import retyped
from streamgraft_common.text import listed

GROUP_SECONDS = 0.4
"""What a channel takes for a key group without much state, as measured with RocksDB."""
READ_BYTES_PER_SECOND = 25e6
"""Bytes of a savepoint that a channel deals out, as measured with 40,000 keys of 400 bytes in
Spark's own state store, on a machine with other work to do; RocksDB took two thirds of the time."""


@dataclass(frozen=True)
class Redistribution:
    """State of a stage that is dealt out to another number of key groups."""

    stage: str
    region: str
    old_groups: int
    new_groups: int
    size_bytes: int
    read_bytes: int
    """What is read for it: a new group may lie in several old ones, and an old one in several."""

    def seconds(self, channels: int) -> float:
        """Return about how long it takes if so many channels do it side by side."""
        groups = math.ceil(self.new_groups / channels)
        return groups * (GROUP_SECONDS + self.read_bytes / self.new_groups / READ_BYTES_PER_SECOND)


class NotRestorable(Exception):
    """A savepoint doesn't fit what is to start from it; the message says why, and what to do."""


def keeps_state(operator: Operator) -> bool:
    """Return whether an operator keeps something of its own: state, or positions in a source."""
    return operator.stateful or operator.kind == "source"


def stage_of(metadata: PeMetadata, adl: Adl) -> SavedStage:
    """Return what is remembered of a stage; the same for all of its PEs."""
    operators = {operator.name: operator for operator in adl.operators}
    region = next((item for item in adl.regions if item.name == metadata.region), None)
    schemas = {stream.name: stream.stream_schema for stream in adl.streams}
    return SavedStage(
        name=metadata.stage_name,
        shards=metadata.shard_count,
        region=metadata.region,
        key=list(region.key) if region else [],
        life=metadata.checkpoint_path.rpartition("/")[2].removeprefix(metadata.stage_name),
        operators=metadata.operators,
        stateful=[name for name in metadata.operators if keeps_state(operators[name])],
        inputs=[
            SavedInput(
                stream=port.stream,
                topic=port.topic,
                external=port.external,
                brokers=_own_brokers(operators[port.operator]) if port.external else [],
                columns=None
                if port.external or port.imported
                else columns_of(schemas[port.stream]),
            )
            for port in metadata.inputs
        ],
        exports=[
            SavedExport(
                stream=port.stream, topic=port.topic, columns=columns_of(schemas[port.stream])
            )
            for port in metadata.outputs
            if operators[port.operator].kind == "export"
        ],
        commits=[name for name in metadata.operators if operators[name].commits],
        tables={
            name: state
            for name in metadata.operators
            if (state := operators[name].state) is not None
        },
        plans=plans_of(adl, metadata.bundle_digest, metadata.operators, metadata.parameters),
    )


def _own_brokers(source: Operator) -> list[str]:
    """Return the brokers that a source names itself."""
    return addresses((source.kafka and source.kafka.bootstrap_servers) or "")


def match(saved: Iterable[SavedStage], stage: SavedStage) -> SavedStage | None:
    """Return the saved stage whose checkpoints a stage starts from; None: it starts empty.

    Raises NotRestorable if the stage shares operators with saved ones, but is not the same query.
    """
    return _match(_by_carried(saved), stage)


def _by_carried(saved: Iterable[SavedStage]) -> dict[str, dict[int, SavedStage]]:
    """Return the saved stages by what they carry, each with its number."""
    found: dict[str, dict[int, SavedStage]] = {}
    for number, item in enumerate(saved):
        for name in _carried(item):
            found.setdefault(name, {})[number] = item
    return found


def _match(saved: Mapping[str, Mapping[int, SavedStage]], stage: SavedStage) -> SavedStage | None:
    numbered: dict[int, SavedStage] = {}
    for name in _carried(stage):
        numbered |= saved.get(name, {})
    found = [numbered[number] for number in sorted(numbered)]
    if not found:
        return None
    if len(found) > 1:
        raise NotRestorable(
            f"stage {stage.name} unites the stages {listed(item.name for item in found)} of the"
            " savepoint, whose states can't be united: keep the fusion as it was"
        )
    (old,) = found
    for what, before, now in (
        ("operators with state", old.stateful, stage.stateful),
        ("inputs", _streams(old), _streams(stage)),
    ):
        if before != now:
            raise NotRestorable(
                f"stage {stage.name} has the {what} {listed(now)}, its state in the savepoint is"
                f" of {listed(before)} (stage {old.name}): one query's checkpoint can't be divided"
                " or added to; keep these operators and their fusion as they were"
            )
    _check_topics(old, stage)
    if why := retyped(old, stage):
        raise NotRestorable(
            f"{why}, which a checkpoint can't follow: keep the operator as it was when the"
            " savepoint was taken, or give it a new name, with which it starts empty"
        )
    if old.key != stage.key:
        raise NotRestorable(
            f"stage {stage.name} has the key {listed(stage.key)}, its state in the savepoint is"
            f" partitioned by {listed(old.key)}: keep that key"
        )
    if old.shards != stage.shards:
        _check_divisible(old, stage)
    return old


def _check_topics(old: SavedStage, stage: SavedStage) -> None:
    """Raise NotRestorable if positions would be those of another outside topic."""
    for before, now in zip(old.inputs, stage.inputs, strict=True):
        if names.is_import(before.topic) and names.is_import(now.topic):
            continue  # its positions are in the topics of exports, whatever the job's name
        if before.external and now.external and before.topic != now.topic:
            raise NotRestorable(
                f"stream {now.stream} is topic {now.topic}, and its positions in the savepoint are"
                f" of topic {before.topic}: keep that topic, or give the source a new name and"
                " leave the positions behind with --allow-dropped-state, with which it begins by"
                " its starting_offsets"
            )


def united_state(states: Iterable[Iterable[object] | None]) -> list[SavedState] | None:
    """Return what the state of a stage consists of, by its shards; None if one doesn't say.

    Shards run the same query, but some may never have had a record.
    """
    noted = [None if item is None else list(item) for item in states]
    if None in noted:
        return None
    found: list[object] = next(filter(None, noted), [])
    return [SavedState.model_validate(item) for item in found]


def _check_divisible(old: SavedStage, stage: SavedStage) -> None:
    """Raise NotRestorable if the state can't be dealt out to another number of key groups."""
    change = (
        f"stage {stage.name} has {stage.shards} key groups, the savepoint {old.shards}, and"
        " its state can't be dealt out anew"
    )
    keep = f": keep max_width={old.shards}"
    if any(item.external for item in old.inputs):
        raise NotRestorable(f"{change}, since it reads an outside topic by partitions{keep}")
    if old.state is None:
        raise NotRestorable(
            f"{change}, since the savepoint doesn't say by what it is kept{keep}, or take another"
            " savepoint with this release"
        )
    for state in old.state:
        if key_columns(state, old.key) is None:
            kept = f"kept by {listed(state.key)}" if state.key else "not kept by columns"
            raise NotRestorable(
                f"{change}, since that of {listed(old.stateful)} (Spark's {state.operator}) is"
                f" {kept}, not by the region's key {listed(old.key)}{keep}"
            )


def redistributions(
    saved: Collection[SavedStage], stages: Iterable[SavedStage]
) -> list[Redistribution]:
    """Return whose state is dealt out anew. Raises NotRestorable as `match` does."""
    found = []
    by_carried = _by_carried(saved)
    for stage in stages:
        old = _match(by_carried, stage)
        if old is not None and old.shards != stage.shards:
            read_bytes = old.size_bytes * readings(old.shards, stage.shards)
            groups = old.shards, stage.shards
            found.append(
                Redistribution(stage.name, stage.region or "", *groups, old.size_bytes, read_bytes)
            )
    return found


def dropped(saved: Collection[SavedStage], stages: Collection[SavedStage]) -> list[SavedStage]:
    """Return the saved stages with state, or positions in sources, that no stage takes."""
    by_carried = _by_carried(saved)
    taken = {item.name for stage in stages if (item := _match(by_carried, stage))}
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


def check_whole(name: str, spec: Mapping[str, object]) -> None:
    """Raise NotRestorable if a savepoint has a part of its job only: no job can start from it."""
    if region := spec.get("consistentRegion"):
        raise NotRestorable(
            f"savepoint {name} is a cut of consistent region {region}, which is not the whole job:"
            " create one of the job"
        )
    if spec.get("region"):
        raise NotRestorable(
            f"savepoint {name} has one region only, for a width change: restore one of a whole job"
        )


def check_stays(name: str, metadata: Mapping[str, object]) -> None:
    """Raise NotRestorable if a savepoint is being deleted: its copies go, at the latest when its
    repository answers, and a job that is about to start from it would find none."""
    if "deletionTimestamp" in metadata:
        raise NotRestorable(f"savepoint {name} is being deleted: choose another one")


def check(
    name: str, status: SavepointStatus, stages: Collection[SavedStage], *, drop: bool = False
) -> None:
    """Raise NotRestorable if a job of these stages can't start from a savepoint.

    `drop`: whether state that no stage takes, and what sinks have put aside that nobody would make
    final, may be left behind.
    """
    check_complete(name, status)
    left = [one for item in dropped(status.stages, stages) for one in sorted(_carried(item))]
    sinks = {sink for stage in stages for sink in stage.commits}
    left += [sink for item in status.stages for sink in item.commits if sink not in sinks]
    if left and not drop:
        raise NotRestorable(
            f"no operator takes the state of {listed(left)} in savepoint {name}: keep the"
            " operators' names, and what sinks do at cuts, or leave it behind with"
            " --allow-dropped-state"
        )
    by_carried = _by_carried(status.stages)
    for stage in stages:
        old = _match(by_carried, stage)
        # The PEs don't ask: they may have a bundle of the same code that was built otherwise.
        if old is not None and (why := unproven(old, stage)[1]):
            raise NotRestorable(f"{why}, or give it a new name, with which it starts empty")


def _carried(stage: SavedStage) -> set[str]:
    """Return the operators with state and the outside streams: what a fresh start would lose."""
    return {*stage.stateful, *(item.stream for item in stage.inputs if item.external)}


def _streams(stage: SavedStage) -> list[str]:
    return [item.stream for item in stage.inputs]
