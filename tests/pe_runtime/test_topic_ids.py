"""Whether the topics of sources are those that the positions of a shard are of."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from streamgraft_common.pe_metadata import InputPort
from streamgraft_pe_runtime import topic_ids
from streamgraft_pe_runtime.beyond import Beyond
from streamgraft_pe_runtime.brokers import Bounds
from streamgraft_pe_runtime.driver import Driver
from streamgraft_pe_runtime.protocol.failures import explained
from streamgraft_pe_runtime.topic_ids import (
    TopicIds,
    TopicReplaced,
    Topics,
    check,
    forget,
    noted,
)


def port(topic: str, servers: str = "b:1", *, external: bool = True) -> InputPort:
    return InputPort(
        port=0,
        stream=topic,
        topic=topic,
        partitions=1,
        bootstrap_servers=servers,
        operator=topic,
        external=external,
    )


A, B = port("a"), port("b")


def test_a_topic_that_was_made_anew_is_another_one(tmp_path: Path) -> None:
    shard = tmp_path / "0"
    check(shard, [A, B], {"a": "1", "b": "2"})
    check(shard, [A, B], {"a": "1", "b": "2"})
    with pytest.raises(TopicReplaced, match="b is another topic of that name"):
        check(shard, [A, B], {"a": "1", "b": "3"})
    assert noted(shard) == {"a": "1", "b": "2"}


def test_brokers_that_do_not_tell_change_nothing(tmp_path: Path) -> None:
    check(tmp_path, [A], {})
    assert not [*tmp_path.iterdir()]
    check(tmp_path, [A], {"a": "1"})
    check(tmp_path, [A], {})
    with pytest.raises(TopicReplaced):
        check(tmp_path, [A], {"a": "2"})


def test_only_what_is_read_is_noted(tmp_path: Path) -> None:
    """A source that an edit drops begins anew if another edit brings it back."""
    check(tmp_path, [A, B], {"a": "1", "b": "2"})
    imported = B.model_copy(update={"imported": True})
    check(tmp_path, [A, imported], {"a": "1", "b": "2"})
    check(tmp_path, [A, B], {"a": "1", "b": "3"})
    assert noted(tmp_path) == {"a": "1", "b": "3"}


def test_a_stream_between_pes_has_an_advice_of_its_own(tmp_path: Path) -> None:
    stream = port("c", external=False)
    check(tmp_path, [A, stream], {"a": "1", "c": "3"})
    with pytest.raises(TopicReplaced, match="roll back the consistent region"):
        check(tmp_path, [A, stream], {"a": "1", "c": "4"})
    said = explained(str(TopicReplaced("c" * 100, stream)))
    assert (said.reason, said.message[-5:]) == ("TopicReplaced", "state")
    forget(tmp_path, {"c"})
    assert noted(tmp_path) == {"a": "1"}, "it went back to a cut, and begins where the topic ends"
    check(tmp_path, [A, stream], {"c": "4"})


def test_what_brokers_tell_too_late_is_compared_when_they_tell_it(tmp_path: Path) -> None:
    """A driver's first client may take longer than anybody waits: what was replaced before, or is
    replaced later, must show all the same."""
    shards = [tmp_path / "0", tmp_path / "1"]
    Topics(shards[1:], [A]).confirm({"a": "1"})
    late = Topics(shards, [A, B])
    late.confirm({})
    late.confirm({"b": "2"})
    assert (noted(shards[0]), noted(shards[1])) == ({"b": "2"}, {"a": "1", "b": "2"})
    late.confirm({"a": "1"})
    assert noted(shards[0]) == {"a": "1", "b": "2"}
    for now in ({"a": "3"}, {"b": "3"}):
        with pytest.raises(TopicReplaced):
            late.confirm(now)
    with pytest.raises(TopicReplaced):
        Topics(shards, [A]).confirm({"a": "3"})


class PlayedIds(TopicIds):
    """Brokers that tell of the topics that are set."""

    def __init__(self) -> None:
        super().__init__(cast(SparkSession, None))
        self.asked: list[list[str]] = []
        self.prefix = "id of "
        """They have no topic if it is empty."""
        self.late = 0
        """How often they answer too late."""

    def _described(
        self, port: InputPort, options: Mapping[str, str], topics: Sequence[str]
    ) -> tuple[dict[str, str], list[str]]:
        self.asked.append(list(topics))
        if self.late:
            self.late -= 1
            return {}, list(topics)
        return {topic: f"{self.prefix}{topic}" for topic in topics if self.prefix}, []


def test_streams_that_are_known_are_not_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards that change hands do not wait for brokers; those of users are asked for each time."""
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    ids, inputs = PlayedIds(), [A, port("c", external=False), port("d", external=False)]
    everything = {name: f"id of {name}" for name in "acd"}

    def ask(noted: Mapping[str, str] | None) -> list[list[str]]:
        assert ids.ask(inputs, {}, noted) == everything
        asked, ids.asked = ids.asked, []
        return asked

    assert ask(everything) == [["a"], ["c", "d"]]
    assert ask(everything) == [["a"]]
    assert ask(None) == [["a"], ["c", "d"]]
    assert ask({"c": "id of c"}) == [["a"], ["d"]], "what is noted anew is what they say now"
    assert ask(everything | {"c": "another"}) == [["a"], ["c"]], "nor is anything refused by heart"
    now = 1000.0
    assert ask(everything) == [["a"], ["c", "d"]]


def test_a_rollback_notes_the_topic_that_was_made_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The id of before was told a moment ago."""
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    ids, stream = PlayedIds(), port("c", external=False)
    shards = [tmp_path / "0", tmp_path / "1"]

    def start() -> Topics:
        topics = Topics(shards, [stream])
        topics.confirm(ids.ask([stream], {}, topics.noted()))
        return topics

    start()
    assert [noted(shard) for shard in shards] == [{"c": "id of c"}] * 2
    now, ids.prefix = 20.0, ""
    assert ids.ask([stream], {}) == {}
    assert ids.ask([stream], {}, noted(shards[0])) == {}, "it is gone, and may come again"
    now, ids.prefix = 45.0, "new id of "
    with pytest.raises(TopicReplaced):
        start()
    forget(shards[1], {"c"})
    assert Topics(shards, [stream]).noted() == {}
    forget(shards[0], {"c"})
    running = start()
    assert [noted(shard) for shard in shards] == [{"c": "new id of c"}] * 2
    now = 60.0
    running.confirm(ids.ask([stream], {}))


def test_before_a_query_starts_brokers_that_are_late_are_asked_twice() -> None:
    ids = PlayedIds()
    ids.late = 1
    assert ids.ask([A], {}, {}) == {"a": "id of a"}
    ids.late = 1
    assert ids.ask([A], {}) == {}
    assert len(ids.asked) == 3


def test_a_source_s_patience_does_not_keep_the_question_from_being_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Kafka makes no client that waits longer for a request than for an answer."""
    shown: dict[str, str] = {}

    @contextmanager
    def admin(jvm: object, servers: str, options: Mapping[str, str]) -> Iterator[Any]:
        shown.update(options)
        yield None

    monkeypatch.setattr(topic_ids, "jvm_admin", admin)
    session: Any = SimpleNamespace(_jvm=None)
    options = {"kafka.request.timeout.ms": "60000", "kafka.client.id": "us"}
    TopicIds(session).ask([A], {A.operator: options})
    assert shown == {
        "kafka.client.id": "us",
        "kafka.request.timeout.ms": "5000",
        "kafka.default.api.timeout.ms": "5000",
    }


def test_topics_of_one_name_in_two_clusters(tmp_path: Path) -> None:
    inputs = [port("a", "b:1"), port("a", "b:2")]
    check(tmp_path, inputs, {"a@b:1": "1", "a@b:2": "2"})
    assert noted(tmp_path) == {"a@b:1": "1", "a@b:2": "2"}


def test_a_position_behind_the_end_is_believed_when_it_is_seen_twice() -> None:
    beyond, key = Beyond(), ("t", 0)
    failed = []
    for end, position in ((10, 10), (10, 12), (14, 13), (5, 13), (14, 13), (5, 13), (5, 13)):
        bounds = Bounds({key: (0, end)}, {key: 0.0})
        beyond.sort_out(bounds, {key: position})
        assert (key in bounds.found) != (key in bounds.failed)
        failed.append(bounds.failed.get(key, ""))
    assert failed[:-1] == [""] * 6
    assert "ends at 5, and the position is 13" in failed[-1]


def test_options_of_a_sink_are_not_for_the_stream_that_it_reads() -> None:
    """They are for the brokers of its topic."""
    options = {"kafka.security.protocol": "SSL"}
    driver: Any = SimpleNamespace(_endpoint=lambda _: SimpleNamespace(options=options))
    stream = port("c", external=False)
    assert Driver._options(driver, [A, stream]) == {A.operator: options}
