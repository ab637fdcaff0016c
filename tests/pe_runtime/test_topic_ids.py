"""Whether the topics of sources are those that the positions of a shard are of."""

from pathlib import Path

import pytest

from streamgraft_common.pe_metadata import InputPort
from streamgraft_pe_runtime.beyond import Beyond
from streamgraft_pe_runtime.brokers import Bounds
from streamgraft_pe_runtime.topic_ids import TopicReplaced, check, noted


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
    stream, imported = port("c", external=False), B.model_copy(update={"imported": True})
    check(tmp_path, [A, stream, imported], {"a": "1", "b": "2", "c": "3"})
    check(tmp_path, [A, B], {"a": "1", "b": "3"})
    assert noted(tmp_path) == {"a": "1", "b": "3"}


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
