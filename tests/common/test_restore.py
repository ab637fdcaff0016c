"""Which state of a savepoint a stage takes."""

import pytest

from streamgraft_common.resources import SavedInput, SavedStage, SavedState, SavepointStatus
from streamgraft_common.resources.savepoint import FORMAT
from streamgraft_common.restore import (
    NotRestorable,
    check,
    check_whole,
    dropped,
    match,
    redistributions,
    united_state,
)

SOURCE = SavedStage(
    name="pe-0",
    shards=1,
    operators=["read"],
    inputs=[SavedInput(stream="raw", topic="in", external=True)],
)
COUNTS = SavedStage(
    name="work",
    shards=4,
    region="work",
    key=["key"],
    operators=["clean", "counted"],
    stateful=["counted"],
    inputs=[SavedInput(stream="raw", topic="ns.job.raw.work")],
)
SINK = SavedStage(
    name="pe-1",
    shards=1,
    operators=["write"],
    inputs=[SavedInput(stream="counts", topic="ns.job.counts")],
)
SAVED = [SOURCE, COUNTS, SINK]


def changed(stage: SavedStage, **update: object) -> SavedStage:
    return stage.model_copy(update=update)


def test_stages_are_matched_by_their_operators_with_state_and_their_sources() -> None:
    assert match(SAVED, changed(SOURCE, name="pe-7", operators=["read", "more"])) == SOURCE
    assert match(SAVED, changed(COUNTS, name="other", operators=["counted"])) == COUNTS


def test_what_has_neither_state_nor_a_source_starts_empty() -> None:
    """It had read all of the job's own topics, and the new job has fresh ones."""
    assert match(SAVED, SINK) is None
    assert match(SAVED, changed(COUNTS, stateful=["new"])) is None


def test_a_source_at_other_brokers_keeps_its_positions_unless_it_has_a_new_name() -> None:
    """The two ways that an edit of its brokers is refused with."""
    mirrored = SavedInput(stream="raw", topic="in", external=True, brokers=["mirror:9092"])
    assert match(SAVED, changed(SOURCE, inputs=[mirrored])) == SOURCE
    other = SavedInput(stream="other", topic="in", external=True, brokers=["mirror:9092"])
    renamed = changed(SOURCE, inputs=[other])
    assert match(SAVED, renamed) is None
    status = SavepointStatus(phase="Completed", format=FORMAT, stages=SAVED)
    check("first", status, [renamed, COUNTS, SINK], drop=True)


@pytest.mark.parametrize(
    ("stage", "message"),
    [
        (changed(COUNTS, stateful=["counted", "joined"]), "operators with state counted, joined"),
        (changed(SOURCE, stateful=["counted"]), "unites the stages pe-0, work"),
        (changed(COUNTS, inputs=[]), "the inputs none"),
        (changed(COUNTS, shards=8), "8 key groups, the savepoint 4.*keep max_width=4, or take"),
        (changed(COUNTS, key=["user"]), "has the key user, its state in the savepoint"),
    ],
    ids=["more state", "united", "other inputs", "more groups", "other key"],
)
def test_what_is_not_the_same_query_is_refused(stage: SavedStage, message: str) -> None:
    with pytest.raises(NotRestorable, match=message):
        match(SAVED, stage)


def keyed(operator: str, *key: str) -> SavedStage:
    return changed(COUNTS, state=[SavedState(operator=operator, key=list(key))], size_bytes=100)


def test_state_by_the_regions_key_is_dealt_out_to_other_key_groups() -> None:
    saved = keyed("stateStoreSave", "key", "window")
    wider = changed(COUNTS, shards=6)
    assert match([saved], wider) == saved
    (found,) = redistributions([SOURCE, saved], [SOURCE, wider])
    assert (found.old_groups, found.new_groups, found.read_bytes) == (4, 6, 300)
    assert found.seconds(1) == pytest.approx(2 * found.seconds(2))
    assert redistributions([saved], [COUNTS]) == []


@pytest.mark.parametrize(
    ("saved", "message"),
    [
        (keyed("stateStoreSave", "word"), r"counted \(Spark's stateStoreSave\) is kept by word"),
        (keyed("transformWithStateExec"), r"\(Spark's transformWithStateExec\) is not kept by"),
    ],
)
def test_other_state_keeps_its_key_groups(saved: SavedStage, message: str) -> None:
    assert match([saved], COUNTS) == saved
    with pytest.raises(NotRestorable, match=message):
        match([saved], changed(COUNTS, shards=8))


def test_any_shard_with_state_has_the_columns_that_it_is_kept_by() -> None:
    state = SavedState(operator="dedupe", key=["key"])
    assert united_state([[], [state], []]) == [state]
    assert united_state([[], [state.to_wire()]]) == [state]
    assert united_state([[], []]) == []
    assert united_state([[state], None]) is None


def test_state_without_a_new_owner_is_named() -> None:
    status = SavepointStatus(phase="Completed", format=FORMAT, stages=SAVED)
    check("s", status, SAVED)
    assert dropped(SAVED, [SOURCE, SINK]) == [COUNTS]
    with pytest.raises(NotRestorable, match="the state of counted in savepoint s"):
        check("s", status, [SOURCE, SINK])
    check("s", status, [SOURCE, SINK], drop=True)


def test_what_a_sink_has_put_aside_needs_the_sink_whatever_its_stage() -> None:
    """It is handed on by the sink's name."""
    saved = [SOURCE, COUNTS, changed(SINK, commits=["write"])]
    status = SavepointStatus(phase="Completed", format=FORMAT, stages=saved)
    check("s", status, [SOURCE, changed(COUNTS, operators=["counted", "write"], commits=["write"])])
    for sink in (SINK, changed(SINK, operators=["keep"], commits=["keep"])):
        with pytest.raises(NotRestorable, match=r"state of write in savepoint s: .*at cuts"):
            check("s", status, [SOURCE, COUNTS, sink])
        check("s", status, [SOURCE, COUNTS, sink], drop=True)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (SavepointStatus(phase="Saving"), "not complete, but Saving"),
        (SavepointStatus(phase="Failed", message="no time"), "Failed: no time"),
        (SavepointStatus(phase="Completed", format=FORMAT + 1), "the release that wrote it"),
    ],
)
def test_what_can_not_be_restored_at_all(status: SavepointStatus, message: str) -> None:
    with pytest.raises(NotRestorable, match=message):
        check("s", status, [])


@pytest.mark.parametrize("part", ["region", "consistentRegion"])
def test_a_savepoint_of_a_part_of_a_job_is_refused(part: str) -> None:
    check_whole("s", {"job": "j"})
    with pytest.raises(NotRestorable, match=r"savepoint s .*whole job"):
        check_whole("s", {"job": "j", part: "r"})
