"""What an edit of a running job does to the state and the positions of its operators. Pure.

Both belong to names: a stage has the name of the operator that it keeps them for, and its
checkpoint that of the stage. One query's checkpoint can't be divided, added to or pointed at
another topic. So a stage that reads and keeps what it did goes on, one that is new starts empty,
and an edit that needs more than that is refused before anything stops.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from streamgraft_common.resources import SavedInput, SavedStage
from streamgraft_common.state_tables import remade
from streamgraft_common.text import listed


class Fate(StrEnum):
    """What becomes of what an operator keeps."""

    KEPT = "kept"
    NEW = "new"
    DROPPED = "dropped"
    IMPOSSIBLE = "impossible"


@dataclass(frozen=True)
class Outcome:
    """The fate of an operator's state, or of a stage's positions in a stream."""

    operator: str
    """The operator with the state; of positions the one that its stage is named by."""
    stream: str | None
    """Stream that the positions are in; None: it is about state."""
    fate: Fate
    why: str = ""
    """Why it is impossible, and what to do."""

    def __str__(self) -> str:
        what = "state" if self.stream is None else f"positions in {self.stream}"
        why = f": {self.why}" if self.why else ""
        return f"{self.operator}: {what} {self.fate}{why}"


class EditRefused(Exception):
    """An edit that can't be done as it is; the message says which operator, and what to do."""


def outcomes(old: Collection[SavedStage], new: Collection[SavedStage]) -> list[Outcome]:
    """Return what becomes of everything that the stages of the old graph and the new one keep.

    Each state and each stream that a stage reads is in it once; those of the new graph first.
    """
    before = {stage.name: stage for stage in old}
    after = {name: stage for stage in new for name in stage.operators}
    states = {name for stage in new for name in stage.stateful}
    result = [item for stage in new for item in _of_new(stage, before, old, states)]
    for stage in old:
        if stage.name not in {item.name for item in new}:
            result += _of_gone(stage, after)
    return result


def check(old: Collection[SavedStage], new: Collection[SavedStage], drop: Collection[str]) -> None:
    """Raise EditRefused if an edit can't be done, or drops state of operators not in `drop`."""
    allow(outcomes(old, new), drop)


def allow(found: Collection[Outcome], drop: Collection[str]) -> None:
    """Raise EditRefused if one of the outcomes is impossible, or state not in `drop` is dropped."""
    if impossible := [item for item in found if item.fate is Fate.IMPOSSIBLE]:
        raise EditRefused(impossible[0].why)
    states = [item.operator for item in found if item.fate is Fate.DROPPED and item.stream is None]
    if left := [name for name in states if name not in drop]:
        options = " ".join(f"--drop-state {name}" for name in left)
        raise EditRefused(
            f"this edit drops the state of {listed(left)}: keep the names, or allow it with"
            f" {options} (spec.dropState)"
        )


def dropped_stages(old: Iterable[SavedStage], new: Iterable[SavedStage]) -> set[str]:
    """Return the stages whose checkpoints nobody goes on with."""
    return {stage.name for stage in old} - {stage.name for stage in new}


def _of_new(
    stage: SavedStage,
    before: Mapping[str, SavedStage],
    old: Iterable[SavedStage],
    states: Collection[str],
) -> Iterator[Outcome]:
    former = before.get(stage.name)
    if former is None:
        elsewhere = {name: item.name for item in old for name in item.stateful}
        moved = next((name for name in stage.stateful if name in elsewhere), None)
        why = _moved(moved, elsewhere[moved], stage.name) if moved else ""
        yield from _all(stage, Fate.IMPOSSIBLE if moved else Fate.NEW, why)
        return
    why = _difference(former, stage)
    yield from _all(stage, Fate.IMPOSSIBLE if why else Fate.KEPT, why)
    for name in former.stateful:
        if name not in states:
            yield Outcome(name, None, Fate.IMPOSSIBLE, why)


def _of_gone(stage: SavedStage, after: Mapping[str, SavedStage]) -> Iterator[Outcome]:
    moved = next((name for name in stage.operators if name in after), None)
    if moved is None:
        yield from _all(stage, Fate.DROPPED)
    else:
        why = _moved(moved, stage.name, after[moved].name)
        yield from _all(stage, Fate.IMPOSSIBLE, why)


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
    operator, why = remade(old, new)
    if why:
        return (
            f"{why}, which its checkpoint can't follow; {SAVE}, which keeps what is there, and give"
            " the operator, and all that read its stream, new names, with which they start empty;"
            f" --drop-state {operator} (spec.dropState) lets the old state go"
        )
    return ""


def _other_brokers(old: SavedStage, new: SavedStage) -> str:
    """Return why positions in a topic of that name would be those of another one, '' if they are
    not, or if a former release did not note whose they are."""
    former = {item.topic: item for item in old.inputs}
    for now in new.inputs:
        before = former[now.topic]
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


def _topics(inputs: Iterable[SavedInput]) -> list[str]:
    # In which order is not the checkpoint's concern: positions are found by their topics.
    return sorted(item.topic for item in inputs)


def _some(values: list[str]) -> str:
    return listed(values) if values else "nothing"
