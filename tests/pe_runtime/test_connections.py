"""Connections between PEs: what is known of them, and what of that is written."""

from typing import Any

from confluent_kafka import KafkaError, KafkaException

from streamgraft_common.pe_metadata import InputPort, OutputPort, PeMetadata
from streamgraft_common.resources import Connection
from streamgraft_pe_runtime.connections import Connections, Place, changed

IN: Place = ("in", "raw", "ns.job.raw")
OUT: Place = ("out", "done", "ns.job.done.r")


_AT: dict[str, Any] = {"port": 0, "partitions": 1, "bootstrap_servers": "b:1", "operator": "o"}
METADATA = PeMetadata(
    namespace="ns",
    job="job",
    pe_id=3,
    stage_name="o",
    operators=["o"],
    inputs=[
        InputPort(stream="raw", topic=IN[2], **_AT),
        InputPort(stream="outside", topic="theirs", external=True, **_AT),
        InputPort(stream="shared", topic="IMPORT", imported=True, **_AT),
    ],
    outputs=[
        OutputPort(stream="done", topic=OUT[2], **_AT),
        OutputPort(stream="done", topic="theirs", external=True, **_AT),
    ],
    checkpoint_path="p",
    trigger_seconds=1.0,
    bundle_digest="",
)


class PlayedBrokers:
    """Brokers that know some topics, or do not answer; counts what they are asked."""

    def __init__(self, *topics: str) -> None:
        self.topics: tuple[str, ...] | None = topics
        self.asked = 0

    def partitions(self, topic: str) -> list[int]:
        """Return the partitions of a topic."""
        self.asked += 1
        if self.topics is None:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        return [0] if topic in self.topics else []


def look(connections: Connections, brokers: Any, calm: bool = False, why: str = "") -> Any:
    failed = {IN[2]: why} if why else {}
    connections.look(METADATA, "b:1", brokers, failed, calm=calm)
    return connections.now()


def test_outputs_are_asked_about_seldom_while_they_are_there() -> None:
    """Outside topics are nobody else's; a topic that is missing is asked about each time."""
    connections, brokers = Connections(), PlayedBrokers()
    assert look(connections, brokers) == {IN: "", OUT: "there is no topic ns.job.done.r"}
    brokers.topics = (OUT[2],)
    assert look(connections, brokers) == {IN: "", OUT: ""}
    look(connections, brokers)
    assert brokers.asked == 2
    brokers.topics = None
    found = look(connections, brokers, calm=True, why="partition 0: timed out")
    assert found[IN] == "partition 0: timed out"
    assert "_TRANSPORT" in found[OUT]
    other: Any = brokers
    connections.look(METADATA, "other:1", other, {}, calm=True)
    assert connections.now() == found


def test_outputs_are_asked_about_at_once_when_inputs_fail() -> None:
    """What keeps inputs from answering often keeps outputs from it, too."""
    connections, brokers = Connections(), PlayedBrokers(OUT[2])
    assert look(connections, brokers)[OUT] == ""
    brokers.topics = None
    assert "_TRANSPORT" in look(connections, brokers, why="partition 0: timed out")[OUT]


def test_only_what_came_or_went_is_written() -> None:
    first = changed([], {IN: "", OUT: "no answer"})
    assert first is not None
    assert [(item.direction, item.connected, item.message) for item in first] == [
        ("in", True, ""),
        ("out", False, "no answer"),
    ]
    assert changed(first, {IN: "", OUT: "another error"}) is None
    old = [item.model_copy(update={"since": "then"}) for item in first]
    later = changed(old, {IN: "", OUT: ""})
    assert later is not None
    assert [(item.connected, item.since == "then") for item in later] == [
        (True, True),
        (True, False),
    ]
    assert changed(old, {IN: ""}) == old[:1]


def test_a_pe_without_neighbours_has_none() -> None:
    assert changed([], {}) is None
    gone = Connection(direction="in", stream="s", topic="t", connected=True, since="")
    assert changed([gone], {}) == []
