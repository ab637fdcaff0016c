"""Changes of exports and imports, as a PE tells them."""

from streamgraft_common.resources import RuntimeStatus
from streamgraft_pe_runtime.protocol.stream_changes import StreamChanges


def test_equal_calls_in_a_row_are_one_change() -> None:
    """A sink's function makes the call with each batch."""
    changes = StreamChanges("uid")
    assert changes.add(None, "out", "properties", {"a": 1})
    assert not changes.add(None, "out", "properties", {"a": 1})
    assert changes.add(None, "in", "filter", "a == 1")
    assert changes.add(None, "out", "properties", {"a": 2})
    told = changes.all(None)
    assert [(item.operator, item.value, item.id) for item in told] == [
        ("out", {"a": 2}, "uid.3"),
        ("in", "a == 1", "uid.2"),
    ]


def test_the_next_launch_goes_on_telling() -> None:
    """What the last one asked for may not be applied yet; the same call says nothing new."""
    before = StreamChanges("one")
    before.add(None, "out", "properties", {"a": 1})
    before.add(None, "in", "filter", "a == 1")
    known = RuntimeStatus(stream_changes=before.all(None))
    after = StreamChanges("two")
    assert not after.add(known, "out", "properties", {"a": 1})
    assert after.add(known, "in", "filter", "")
    assert [item.id for item in after.all(known)] == ["one.1", "two.1"]
