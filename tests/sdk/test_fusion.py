"""Which operators may share a processing element."""

import streamgraft as sg
from streamgraft._fusion import groups


def test_groups_are_what_is_connected_within_a_region() -> None:
    """Two chains outside of regions stay apart; a region splits a chain in three."""
    app = sg.Application("groups")
    first = app.kafka_source("first", topic="a", schema="a string")
    second = app.kafka_source("second", topic="b", schema="a string")
    with app.parallel("region", key="a", max_width=2):
        inner, _ = app.split("inside", input=first, outputs={"inner": "true", "other": "true"})
        app.kafka_sink("inner-sink", input=inner, topic="c")
    app.kafka_sink("behind", input=inner, topic="d")
    app.split("beside", input=first, outputs={"part": "true"})
    app.kafka_sink("part-sink", input="part", topic="e")
    app.kafka_sink("second-sink", input=second, topic="f")

    found = [[operator.name for operator in group] for group in groups(app.graph)]
    assert sorted(found) == [
        ["behind"],
        ["first", "beside", "part-sink"],
        ["inside", "inner-sink"],
        ["second", "second-sink"],
    ]
