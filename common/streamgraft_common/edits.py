"""What an edit of a running job does to the state and the positions of its operators. Pure.

Both belong to names: a stage has the name of the operator that it keeps them for, and its
checkpoint that of the stage. One query's checkpoint can't be divided, added to or pointed at
another topic. So a stage that reads and keeps what it did goes on, one that is new starts empty,
and an edit that needs more than that is refused before anything stops.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from streamgraft_common import names
from streamgraft_common.columns import difference
from streamgraft_common.resources import SavedExport, SavedInput, SavedStage
from streamgraft_common.state_plans import unproven
from streamgraft_common.state_tables import remade
from streamgraft_common.text import listed


class Fate(StrEnum):
    """What becomes of what an operator keeps."""

    KEPT = "kept"
    NEW = "new"
    DROPPED = "dropped"
    CHANGED = "changed"
    IMPOSSIBLE = "impossible"


@dataclass(frozen=True)
class Outcome:
    """The fate of an operator's state, or of a stage's positions in a stream. What a sink has put
    aside is its state: it has a fate if it is dropped."""

    operator: str
    """The operator with the state; of positions the one that its stage is named by."""
    stream: str | None
    """Stream that the positions are in; None: it is about state."""
    fate: Fate
    why: str = ""
    """Why it is impossible or dropped, and what to do."""

    def __str__(self) -> str:
        what = "state" if self.stream is None else f"positions in {self.stream}"
        why = f": {self.why}" if self.why else ""
        return f"{self.operator}: {what} {self.fate}{why}"


class EditRefused(Exception):
    """An edit that can't be done as it is; the message says which operator, and what to do."""


def outcomes(
    old: Collection[SavedStage], new: Collection[SavedStage], made: Collection[str] = ()
) -> list[Outcome]:
    """Return what becomes of everything that the stages of the old graph and the new one keep.

    Each state and each stream that a stage reads is in it once; those of the new graph first.
    `made`: topics that the job has, beside those that the old graph reads.
    """
    after = {name: stage for stage in new for name in stage.operators}
    states = {name for stage in new for name in stage.stateful}
    before = _Before(old, made)
    result = [item for stage in new for item in _of_new(stage, before, states)]
    commits = {stage.name: stage.commits for stage in new}
    for stage in old:
        if stage.name not in commits:
            result += _of_gone(stage, after)
        result += _put_aside(stage, commits)
    return result


def check(
    old: Collection[SavedStage],
    new: Collection[SavedStage],
    drop: Collection[str],
    changed: Collection[str] = (),
    made: Collection[str] = (),
) -> None:
    """Raise EditRefused if an edit can't be done, drops state of operators not in `drop`, or
    changes the columns of streams not in `changed`; `made`: topics that the job has."""
    allow(outcomes(old, new, made), drop, changed)


def allow(found: Collection[Outcome], drop: Collection[str], changed: Collection[str]) -> None:
    """Raise EditRefused if one of the outcomes is impossible, if state is dropped that is not in
    `drop`, or if the columns of a stream change that is not in `changed`."""
    if impossible := [item for item in found if item.fate is Fate.IMPOSSIBLE]:
        raise EditRefused(impossible[0].why)
    states = [item for item in found if item.fate is Fate.DROPPED and item.stream is None]
    if left := [item for item in states if item.operator not in drop]:
        options = " ".join(f"--drop-state {item.operator}" for item in left)
        whys = "".join(f"; {item.operator}: {item.why}" for item in left if item.why)
        raise EditRefused(
            f"this edit drops the state of {listed(item.operator for item in left)}: keep the"
            f" names, or allow it with {options} (spec.dropState){whys}"
        )
    for item in found:
        if item.fate is Fate.CHANGED and item.stream not in changed:
            raise EditRefused(item.why)


def dropped(old: Collection[SavedStage], new: Collection[SavedStage]) -> set[str]:
    """Return what nobody goes on with: stages, for their checkpoints, and regions, for the topics
    that were partitioned for them (`names.of_region`)."""
    stages = {stage.name for stage in old} - {stage.name for stage in new}
    regions = {stage.region for stage in old} - {stage.region for stage in new}
    return stages | {names.of_region(region) for region in regions if region}


def goes_on(old: Collection[SavedStage], new: Collection[SavedStage]) -> bool:
    """Return whether the new stages can go on with all that a cut of the old ones has."""
    lives = {stage.name: stage.life for stage in old}
    return all(item.fate in (Fate.KEPT, Fate.CHANGED) for item in outcomes(old, new)) and all(
        lives.get(stage.name) == stage.life for stage in new
    )


class _Before:
    """What runs."""

    def __init__(self, stages: Collection[SavedStage], made: Collection[str]) -> None:
        self.stages = {stage.name: stage for stage in stages}
        self.stage_of = {name: stage.name for stage in stages for name in stage.operators}
        inputs = [item for stage in stages for item in stage.inputs if not item.external]
        self.topics = {item.topic for item in inputs} | set(made)
        self.columns = {item.topic: item.columns for item in inputs}
        self.exported = {item.topic: item.columns for stage in stages for item in stage.exports}

    def moved(self, stage: SavedStage) -> str:
        """Return why operators can't be in a stage of the new graph that were in another, '' if
        they can: if it is new, has no state, and reads what nobody has written yet."""
        fresh = stage.name not in self.stages and not any(
            item.external or item.topic in self.topics for item in stage.inputs
        )
        for name in stage.stateful if fresh else stage.operators:
            if (former := self.stage_of.get(name, stage.name)) != stage.name:
                return _moved(name, former, stage.name)
        return ""


def _of_new(stage: SavedStage, before: _Before, states: Collection[str]) -> Iterator[Outcome]:
    former = before.stages.get(stage.name)
    why = before.moved(stage) or (_difference(former, stage) if former else "")
    fate = Fate.IMPOSSIBLE if why else Fate.KEPT if former else Fate.NEW
    changed = {} if why else {item.stream: item for item in _other_columns(stage, before)}
    for item in _all(stage, fate, why):
        yield changed.get(item.stream, item) if item.stream else item
    yield from () if why else _other_exports(stage, before)
    for name in former.stateful if former else ():
        if name not in states:
            yield Outcome(name, None, Fate.IMPOSSIBLE, why)


def _other_columns(stage: SavedStage, before: _Before) -> Iterator[Outcome]:
    """Records are JSON objects: what one lacks is null to a reader, without a word."""
    for stream, other in _changed(stage.inputs, before.columns):
        yield Outcome(
            stage.name,
            stream,
            Fate.CHANGED,
            f"records of stream {stream} get other columns ({other}), and those on their way"
            f" to stage {stage.name} have the old ones: what is missing is null there; {SAVE} and"
            " restore it with this application, for which all is read to its end, or allow it with"
            f" --change-stream {stream} (spec.changedStreams)",
        )


def _other_exports(stage: SavedStage, before: _Before) -> Iterator[Outcome]:
    """Who reads an export reads what its topic has of before, too."""
    for stream, other in _changed(stage.exports, before.exported):
        yield Outcome(
            stage.name,
            stream,
            Fate.CHANGED,
            f"the exported stream {stream} gets other columns ({other}), and the records that"
            " its topic has already have the old ones: what is missing is null to jobs that import"
            " it; give the export another uid, for another topic, or allow it with --change-stream"
            f" {stream} (spec.changedStreams)",
        )


def _changed(
    streams: Iterable[SavedInput | SavedExport], before: Mapping[str, Mapping[str, str] | None]
) -> Iterator[tuple[str, str]]:
    """Yield each stream whose columns are not what its topic had, with what is other."""
    for item in streams:
        old, new = before.get(item.topic), item.columns
        if old is not None and new is not None and (other := difference(old, new)):
            yield item.stream, other


def _of_gone(stage: SavedStage, after: Mapping[str, SavedStage]) -> Iterator[Outcome]:
    moved = next((name for name in stage.operators if name in after), None)
    if moved is None:
        yield from _all(stage, Fate.DROPPED)
    else:
        why = _moved(moved, stage.name, after[moved].name)
        yield from _all(stage, Fate.IMPOSSIBLE, why)


def _put_aside(stage: SavedStage, commits: Mapping[str, Collection[str]]) -> Iterator[Outcome]:
    """What a sink has put aside is asked for by the names of its stage and its own; positions are
    past it. `commits`: sinks of the new stages that commit."""
    restores = {name for sinks in commits.values() for name in sinks}
    for name in stage.commits:
        if name not in commits.get(stage.name, ()):
            keep = "keep both names (uid=), and its on_commit"
            if name in restores:
                keep = f"{SAVE} and restore it with this application"
            yield Outcome(
                name,
                None,
                Fate.DROPPED,
                "batches that it has put aside since the last cut would never be final, as they are"
                f" those of sink {name} in stage {stage.name}: {keep}",
            )


def _all(stage: SavedStage, fate: Fate, why: str = "") -> list[Outcome]:
    """Return one fate for all that a stage keeps."""
    states = [Outcome(name, None, fate, why) for name in stage.stateful]
    reads = [Outcome(stage.name, item.stream, fate, why) for item in stage.inputs]
    return [*states, *reads]


SAVE = "take a savepoint of what runs"
WAYS = (
    f"{SAVE} and restore it with this application, or give the operator, and all that read its"
    " stream, new names, with which they start empty"
)
"""What to do about a stage that can't go on with its checkpoint."""


def _moved(operator: str, old: str, new: str) -> str:
    return (
        f"operator {operator} would move from stage {old} to stage {new}, away from its checkpoint"
        f" and from records that are on their way to it; {WAYS}"
    )


def _difference(old: SavedStage, new: SavedStage) -> str:
    """Return what keeps a stage from going on with its checkpoint; '' if nothing does."""
    for what, before, now in (
        ("keeps state of", old.stateful, new.stateful),
        ("reads the topics", _topics(old.inputs), _topics(new.inputs)),
        ("is keyed by", old.key, new.key),
        ("has a number of key groups of", [str(old.shards)], [str(new.shards)]),
    ):
        if before != now:
            return (
                f"the stage of operator {new.name} {what} {_some(now)}, and {_some(before)} until"
                f" now, as its checkpoint does; {WAYS}"
            )
    if why := _other_brokers(old, new):
        return why
    operator, why = unproven(old, new)
    if why:
        return f"{why}, or {_anew(operator)}"
    operator, why = remade(old, new)
    if why:
        return (
            f"{why}, which its checkpoint can't follow; {SAVE}, which keeps what is there, and"
            f" {_anew(operator)}"
        )
    return ""


def _anew(operator: str) -> str:
    return (
        "give the operator, and all that read its stream, new names, with which they start empty;"
        f" --drop-state {operator} (spec.dropState) lets the old state go"
    )


def _other_brokers(old: SavedStage, new: SavedStage) -> str:
    """Return why positions in a topic of that name would be those of another one, '' if they are
    not, or if a former release did not note whose they are."""
    for now, before in zip(_by_topic(new.inputs), _by_topic(old.inputs), strict=True):
        if None not in (before.brokers, now.brokers) and before.brokers != now.brokers:
            return (
                f"the stage of operator {new.name} reads topic {now.topic} from {_at(now)}, and"
                f" from {_at(before)} until now, and positions are of one Kafka cluster; {SAVE} and"
                " restore it with this application, if these are addresses of the same cluster, or"
                " else with the source under a new name and --allow-dropped-state, with which it"
                " begins by its starting_offsets"
            )
    return ""


def _at(item: SavedInput) -> str:
    return ",".join(item.brokers or []) or "the job's brokers"


def _by_topic(inputs: Iterable[SavedInput]) -> list[SavedInput]:
    # Two clusters may have topics of one name. Then positions are told apart by their order only.
    return sorted(inputs, key=lambda item: item.topic)


def _topics(inputs: Iterable[SavedInput]) -> list[str]:
    # In which order is not the checkpoint's concern: positions are found by their topics.
    return sorted(item.topic for item in inputs)


def _some(values: list[str]) -> str:
    return listed(values) if values else "nothing"
