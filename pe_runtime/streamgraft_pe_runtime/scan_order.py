"""Positions belong to topics: which of a log's each scan of a plan goes on from. Pure.

Spark numbers the sources of a query as they stand in its plan, and its log has a line for each. So
an edit that has a union begin with its other side, or rows of a topic go one way more or less,
would get the positions of another topic, or none. In micro-batches all scans of an input are one
source for Spark, whose lines say the same.

The log does not say which Kafka cluster a topic is in, nor by which input it is read, or in
real-time mode by which of the ways that rows go: each has scans of its own there, which may end at
different records. So that is noted beside it, and what each way writes to; without the note, the
order counts. What is written to goes on where the way did that wrote to it; a way with another name
that writes to nothing of before, where the only one did that is not there any more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from streamgraft_common.edits import WAYS
from streamgraft_common.text import listed
from streamgraft_pe_runtime.spark_log import Offsets


class OtherTopics(Exception):
    """A plan reads what its checkpoint has no position in; the message says what to do."""


class EditedWays(Exception):
    """A batch in real-time mode was cut off, and its rows would go other ways; the message says
    what to do."""

    def __init__(self) -> None:
        super().__init__(
            "the last run was cut off within a batch in real-time mode, and since then operators"
            " between its inputs and its outputs, or the outputs, were edited: what is written"
            " already can't be told any more. Set back what was edited, let the query run until it"
            " can be stopped, and then edit it"
        )


class OtherWays(Exception):
    """Rows of a topic went ways that ended at different records; the message says what to do."""

    def __init__(self, topic: str) -> None:
        super().__init__(
            f"it read {topic} in several ways, which ended at different records, and which of them"
            " goes on where can't be told: set back what was edited, and edit it again one of these"
            " ways after the other, or leave real-time mode while no records come"
        )


@dataclass(frozen=True)
class Scans:
    """What a plan reads, and what it writes to."""

    names: Sequence[str] = ()
    """Of its scans (`scan_name`), in the order of the plan."""
    outputs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Way → what its rows are written to, in the order of a record's rows; none in micro-batches,
    where all rows end at one record."""

    def of(self, name: str) -> Sequence[str]:
        """Return what the rows of a scan are written to, as far as that is known."""
        return self.outputs.get(way_of(name), ())


def scan_name(topic: str, servers: str = "", way: str = "") -> str:
    """Return the name by which a scan is known here."""
    return topic + (f"@{servers}" if servers else "") + (f"#{way}" if way else "")


def other_name(kind: str, name: str) -> str:
    """Return the name of a scan of something that is no topic: of an import, or a source."""
    return f"{kind} {name}"


def stream_output(operator: str, stream: str) -> str:
    """Return the name of an output (Scans.outputs) that other PEs read; a sink has its own name."""
    return f"{operator}>{stream}"


def is_stream(output: str) -> bool:
    """Return whether an output is one that other PEs read."""
    return ">" in output


def is_topic(name: str) -> bool:
    """Return whether a scan is of a topic, so that its position says which."""
    return " " not in topic_of(name)


def way_of(name: str) -> str:
    """Return the way in the name of a scan."""
    return name.partition("#")[2]


def place_of(name: str) -> str:
    """Return the name of a scan without its way: topic and, if need be, brokers."""
    return name.partition("#")[0]


def topic_of(name: str) -> str:
    """Return the topic of a scan, or of a place."""
    return place_of(name).partition("@")[0]


def servers_of(name: str) -> str:
    """Return the brokers in the name of a scan; '' if its topic is in one cluster only."""
    return place_of(name).partition("@")[2]


def renamed(name: str, topics: Mapping[str, str]) -> str:
    """Return the name of a scan whose topic has another name by now; `topics`: new by old ones."""
    topic = topic_of(name)
    return topics.get(topic, topic) + name[len(topic) :]


def ways_are_edited(before: Scans, now: Scans) -> bool:
    """Return whether the ledger of a batch that was cut off can't tell what is written of it.

    It has how many rows of which record of a way are written. A way or an output that is new gets
    all of them, so others must be what they were.
    """
    gone, new = (
        {way_of(name) for name in one.names} - {way_of(name) for name in other.names}
        for one, other in ((before, now), (now, before))
    )
    if gone and new:
        return True
    written = {output for outputs in now.outputs.values() for output in outputs}
    return any(
        list(outputs) != list(now.outputs[way][: len(outputs)])
        if way in now.outputs
        else not written.isdisjoint(outputs)
        for way, outputs in before.outputs.items()
    )


def comes_another_way(before: Scans, now: Scans) -> bool:
    """Return whether rows of a batch that was cut off would come again by another way to a stream
    whose readers drop repeats: they count the rows of each way.

    Sinks outside get them twice in any case, and a way more has no rows there yet.
    """

    def ways(scans: Scans, output: str) -> set[str]:
        return {way for way, outputs in scans.outputs.items() if output in outputs}

    streams = {name for outputs in before.outputs.values() for name in outputs if is_stream(name)}
    return any(
        ways(before, stream) - ways(now, stream) and ways(now, stream) - ways(before, stream)
        for stream in streams
    )


def arranged(
    positions: Sequence[Offsets], now: Scans, before: Scans | None = None
) -> list[int] | None:
    """Return which of a log's positions each scan of a plan goes on from; None if each has its own.

    `positions`: the partitions of each source by topic; `before`: of the plan that the positions
    are of, as far as that was noted. Raises OtherTopics, OtherWays.
    """
    before = before or Scans()
    if len(before.names) != len(positions) or not all(map(_may_be, before.names, positions)):
        known = [next(iter(position)) for position in positions if len(position) == 1]
        if len(known) != len(positions) or [topic_of(name) for name in now.names] == known:
            return None  # a source without a position yet, or not of one topic, has its place only
        before = Scans(known)
    if any(is_topic(name) and not at for name, at in zip(before.names, positions, strict=True)):
        return None
    places = [
        _place(name, before.names) if is_topic(name) else _other_place(name, before, now)
        for name in now.names
    ]
    found = zip(now.names, places, strict=True)
    if missing := sorted({place_of(name) for name, there in found if not there}):
        raise OtherTopics(
            f"it reads {listed(missing)}, in which its checkpoint has no position: that has some in"
            f" {listed(sorted(map(place_of, before.names)))}; {WAYS}"
        )
    order: list[int] = []
    for name, there in zip(now.names, places, strict=True):
        went_on, fits = _went_on(name, there, now, before)
        same = [index for index in fits if before.names[index] == name]
        if same and len(same) == now.names.count(name):
            # Spark may make several sources of one name, too: each has its place among them.
            order.append(same[list(now.names[: len(order)]).count(name)])
            continue
        if went_on:
            left = [index for index in went_on if not _is_taken(index, name, now, before)]
            chosen = same or [index for index in left if index in fits] or left or went_on[:1]
        else:
            gone = [index for index in there if _is_gone(before.names[index], now, before)]
            chosen = same or gone or there[:1]
        if any(positions[index] != positions[chosen[0]] for index in chosen[1:]):
            raise OtherWays(place_of(name))
        order.append(chosen[0])
    return None if [positions[index] for index in order] == [*positions] else order


def _went_on(
    name: str, there: Sequence[int], now: Scans, before: Scans
) -> tuple[list[int], list[int]]:
    """Return the positions of ways that wrote to something that this scan's rows go to now, and of
    those that wrote to all of it that is not new."""
    outputs, by = set(now.of(name)), {index: set(before.of(before.names[index])) for index in there}
    known = outputs.intersection(set[str]().union(*by.values()))
    return (
        [index for index in there if known & by[index]],
        [index for index in there if known <= by[index]],
    )


def _is_taken(index: int, name: str, now: Scans, before: Scans) -> bool:
    """Return whether the outputs that a scan shares with a way of before get their rows by that way
    still, so that the scan is one more."""
    way = before.names[index]
    shared = set(now.of(name)).intersection(before.of(way))
    return way != name and way in now.names and shared <= set(now.of(way))


def _is_gone(name: str, now: Scans, before: Scans) -> bool:
    """Return whether a way is not there any more, and nothing that it wrote to."""
    written = {output for outputs in now.outputs.values() for output in outputs}
    return name not in now.names and written.isdisjoint(before.of(name))


def _may_be(name: str, position: Offsets) -> bool:
    return not is_topic(name) or not position or [*position] == [topic_of(name)]


def _other_place(name: str, before: Scans, now: Scans) -> list[int]:
    """Return the positions of what is no topic: under its name, or else of the only one of its kind
    that is not there any more."""
    there = [index for index, other in enumerate(before.names) if other == name]
    kind = name.partition(" ")[0]
    gone = [
        index
        for index, other in enumerate(before.names)
        if other not in now.names and not is_topic(other) and other.partition(" ")[0] == kind
    ]
    return there or (gone if len(gone) == 1 else [])


def _place(name: str, known: Sequence[str]) -> list[int]:
    """Return the positions that are of the topic of a scan.

    A name says which cluster it is in only where there are two, so that may have come or gone, or
    have other brokers by now. If it has come, only ways tell which of them was there before.
    """
    there = [index for index, other in enumerate(known) if place_of(other) == place_of(name)]
    if there:
        return there
    named = [index for index, other in enumerate(known) if topic_of(other) == topic_of(name)]
    ours = [index for index in named if way_of(known[index]) == way_of(name)]
    if not ours and not ("@" in place_of(name) and all("@" not in known[index] for index in named)):
        ours = named
    return ours if len({place_of(known[index]) for index in ours}) == 1 else []
