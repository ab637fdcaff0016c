"""What an edit does to state and positions goes by names."""

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgraft_common import names
from streamgraft_common.adl import StateColumn, StateTable
from streamgraft_common.edits import EditRefused, Fate, check, dropped, goes_on, outcomes
from streamgraft_common.resources import SavedExport, SavedInput, SavedStage
from streamgraft_common.restore import NotRestorable, match


def stage(
    *operators: str,
    reads: tuple[str, ...],
    stateful: tuple[str, ...] = (),
    region: str | None = None,
    shards: int = 1,
) -> SavedStage:
    return SavedStage(
        name=next(iter(stateful), operators[0]),
        shards=shards,
        region=region,
        key=["k"] if region else [],
        operators=list(operators),
        stateful=list(stateful),
        inputs=[SavedInput(stream=topic, topic=topic) for topic in reads],
    )


def table(key: list[str], value: list[str], operator: str = "stateStoreSave") -> StateTable:
    columns = [
        [StateColumn(name=name, type=kind) for name, kind in map(str.split, texts)]
        for texts in (key, value)
    ]
    return StateTable(operator=operator, key=columns[0], value=columns[1])


READ = stage("read", "parse", reads=("outside",))
COUNT = stage("clean", "count", reads=("raw",), stateful=("count",), region="r", shards=4)
WRITE = stage("format", "write", reads=("counts",))
JOB = [READ, COUNT, WRITE]


def fates(new: list[SavedStage]) -> dict[str, str]:
    return {f"{item.operator}/{item.stream or ''}": item.fate.value for item in outcomes(JOB, new)}


def test_every_state_and_every_position_has_a_fate() -> None:
    assert fates(JOB) == {
        "read/outside": "kept",
        "count/": "kept",
        "count/raw": "kept",
        "format/counts": "kept",
    }


@pytest.mark.parametrize(
    "new",
    [
        [stage("other", "sink", reads=("elsewhere",)), *JOB],
        [*JOB, stage("branch", reads=("raw",))],
        [stage("read", "parse", "more", reads=("outside",)), COUNT, WRITE],
        [READ, stage("count", reads=("raw",), stateful=("count",), region="r", shards=4), WRITE],
        [READ, COUNT, stage("format", reads=("counts",)), stage("write", reads=("formatted",))],
        [READ, COUNT, stage("after", reads=("counts",), region="r", shards=4), WRITE],
        [READ, COUNT],
        [stage("read", reads=("outside",)), stage("parse", reads=("lines",)), COUNT, WRITE],
    ],
    ids=["source", "branch", "operator", "filter gone", "split", "stage", "sink gone", "unfused"],
)
def test_edits_of_anything_else_keep_all_state(new: list[SavedStage]) -> None:
    check(JOB, new, drop=())
    kept = {name for name, fate in fates(new).items() if fate == "kept"}
    assert {"read/outside", "count/", "count/raw"} <= kept


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (COUNT.model_copy(update={"shards": 8}), "key groups of 8"),
        (COUNT.model_copy(update={"key": ["other"]}), "keyed by other"),
        (COUNT.model_copy(update={"region": None, "key": []}), "keyed by nothing"),
        (stage("count", reads=("x",), stateful=("count",), region="r", shards=4), "topics x"),
        (
            stage("count", "too", reads=("raw",), stateful=("count", "too"), region="r", shards=4),
            "keeps state of count, too",
        ),
    ],
)
def test_a_checkpoint_fits_one_query(changed: SavedStage, message: str) -> None:
    with pytest.raises(EditRefused, match=f"operator count .*{message}.*savepoint.*new names"):
        check(JOB, [READ, changed, WRITE], drop=["count"])


BY_KEY = table(["k string"], ["count bigint"])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (table(["page string"], ["count bigint"]), r"is kept by \(k string\), .* \(page string\)"),
        (table(["k int"], ["count bigint"]), r"would be by \(k int\)"),
        (table(["k string"], ["sum bigint"]), r"holds \(count bigint\), .* hold \(sum bigint\)"),
        (table(["k string"], ["count bigint", "max string"]), "would hold .*max string"),
        (table(["k string"], [], "dedupe"), "consists of stateStoreSave, and would of dedupe"),
    ],
    ids=["key", "type of key", "aggregation", "one more", "other operator"],
)
def test_state_must_be_what_it_was(changed: StateTable, message: str) -> None:
    old = COUNT.model_copy(update={"tables": {"count": [BY_KEY]}})
    new = COUNT.model_copy(update={"tables": {"count": [changed]}})
    with pytest.raises(
        EditRefused, match=f"operator count .*{message}.*savepoint.*new names.*drop"
    ):
        check([READ, old, WRITE], [READ, new, WRITE], drop=["count"])
    check([READ, old, WRITE], [READ, old, WRITE], drop=())
    check([READ, COUNT, WRITE], [READ, new, WRITE], drop=())  # the old build could not say


def at(*brokers: str) -> SavedStage:
    """Return the first stage with brokers that its source names."""
    (read,) = READ.inputs
    return READ.model_copy(update={"inputs": [read.model_copy(update={"brokers": [*brokers]})]})


def test_positions_are_of_one_kafka_cluster() -> None:
    mirror = at("mirror:9092")
    with pytest.raises(
        EditRefused,
        match=r"operator read reads topic outside from mirror:9092, and from the job's brokers"
        r" until now.*savepoint.*same cluster.*new name and --allow-dropped-state",
    ):
        check([at(), COUNT], [mirror, COUNT], drop=["read"])
    with pytest.raises(EditRefused, match="from the job's brokers, and from mirror:9092"):
        check([mirror, COUNT], [at(), COUNT], drop=())
    check([mirror, COUNT], [mirror, COUNT], drop=())
    check([READ, COUNT], [mirror, COUNT], drop=())  # the old release did not say


def test_a_restore_has_positions_in_the_same_outside_topic() -> None:
    (item,) = READ.inputs
    old, new = (
        READ.model_copy(
            update={"inputs": [item.model_copy(update={"external": True, "topic": topic})]}
        )
        for topic in ("clicks", "clicks-v2")
    )
    job, fork = (
        READ.model_copy(
            update={"inputs": [item.model_copy(update={"external": True, "topic": topic})]}
        )
        for topic in (names.import_topic("n", name, "clicks") for name in ("job", "fork"))
    )
    assert match([job], fork) == job  # positions of imports are in the topics of exports
    assert match([old], old) == old
    with pytest.raises(NotRestorable, match=r"is topic clicks-v2, .* of topic clicks: keep that"):
        match([old], new)


def test_a_restore_takes_state_by_types_as_spark_does() -> None:
    old = COUNT.model_copy(update={"tables": {"count": [BY_KEY]}})
    renamed, other = table(["id string"], ["n bigint"]), table(["k string"], ["n double"])
    assert match([old], COUNT.model_copy(update={"tables": {"count": [renamed]}})) == old
    with pytest.raises(NotRestorable, match=r"count holds \(.*bigint\), .* hold \(.*double\)"):
        match([old], COUNT.model_copy(update={"tables": {"count": [other]}}))


def test_operators_dont_leave_their_checkpoint_and_what_is_on_its_way() -> None:
    fused = stage("read", "parse", "format", "write", reads=("outside",))
    with pytest.raises(EditRefused, match="format would move from stage format to stage read"):
        check([READ, WRITE], [fused], drop=["format"])
    before = stage("tag", "format", "write", reads=("counts",))
    with pytest.raises(EditRefused, match="format would move from stage format to stage tag"):
        check(JOB, [READ, COUNT, before], drop=["format"])
    other = stage("first", "count", reads=("raw",), stateful=("first", "count"))
    with pytest.raises(EditRefused, match="operator count would move from stage count"):
        check(JOB, [READ, other, WRITE], drop=["count"])


def test_state_is_dropped_by_name_only() -> None:
    new = [READ, stage("sum", reads=("raw",), stateful=("sum",), region="r", shards=4), WRITE]
    assert fates(new)["count/"] == "dropped"
    with pytest.raises(EditRefused, match=r"drops the state of count: .*--drop-state count"):
        check(JOB, new, drop=["sum"])
    check(JOB, new, drop=["count"])
    assert dropped(JOB, new) == {"count"}
    assert dropped(JOB, [READ, WRITE]) == {"count", "region r"}


def committing(*operators: str) -> SavedStage:
    """Return the first stage with these operators; of them `files` and `archive` commit."""
    sinks = [name for name in operators if name in ("files", "archive")]
    return stage(*operators, reads=("outside",)).model_copy(update={"commits": sinks})


@pytest.mark.parametrize(
    "new",
    [
        [committing("read", "archive")],
        [committing("read")],
        [stage("read", "files", reads=("outside",))],
        [committing("other", "files")],
        [
            committing("read"),
            stage("files", reads=("lines",)).model_copy(update={"commits": ["files"]}),
        ],
    ],
    ids=["renamed", "gone", "commits no more", "its stage is another", "in a stage of its own"],
)
def test_what_a_sink_has_put_aside_is_dropped_by_name_only(new: list[SavedStage]) -> None:
    """The stage goes on with its positions, which are past it."""
    old = [committing("read", "files")]
    lines = [str(item) for item in outcomes(old, new)]
    assert any(
        line.startswith("files: state dropped: batches that it has put aside since the last cut")
        for line in lines
    )
    with pytest.raises(EditRefused) as refused:
        check(old, new, drop=())
    if new[0].name == "read":
        assert "--drop-state files (spec.dropState); files: batches" in str(refused.value)
        way = "take a savepoint of what runs" if len(new) > 1 else "keep both names (uid=)"
        assert f"sink files in stage read: {way}" in str(refused.value)
        check(old, new, drop=["files"])
        assert not goes_on(old, new)


def test_a_sink_that_keeps_its_place_loses_nothing() -> None:
    old = [committing("read", "files")]
    check(old, [committing("read", "clean", "files")], drop=())
    check([stage("read", "files", reads=("outside",))], old, drop=())
    assert {item.fate for item in outcomes(old, old)} == {Fate.KEPT}


def test_a_cut_is_gone_back_to_by_the_stages_that_it_is_of() -> None:
    again = COUNT.model_copy(update={"life": ".2"})
    moved = COUNT.model_copy(update={"inputs": [SavedInput(stream="raw", topic="raw.2")]})
    assert goes_on(JOB, JOB)
    assert not goes_on(JOB, [READ, again, WRITE])
    assert not goes_on(JOB, [READ, moved, WRITE])
    assert not goes_on(JOB, [READ, WRITE])
    assert not goes_on([READ, WRITE], JOB)


def test_lines_of_a_plan() -> None:
    gone = [str(item) for item in outcomes(JOB, [READ, WRITE]) if item.fate is Fate.DROPPED]
    assert gone == ["count: state dropped", "count: positions in raw dropped"]


NAMES = "abcdef"


@st.composite
def graphs(draw: st.DrawFn) -> list[SavedStage]:
    """Operators, dealt out to stages; a stage reads the topic of its name."""
    order = draw(st.permutations(NAMES))
    left = list(order[: draw(st.integers(1, len(NAMES)))])
    stages = []
    while left:
        size = draw(st.integers(1, len(left)))
        members, left = left[:size], left[size:]
        states = tuple(name for name in members if name in "ace")
        stages.append(stage(*members, reads=(members[0],), stateful=states))
    return stages


@given(graphs())
def test_an_equal_graph_keeps_all(graph: list[SavedStage]) -> None:
    check(graph, graph[::-1], drop=())
    assert {item.fate for item in outcomes(graph, graph[::-1])} == {Fate.KEPT}


@given(graphs(), graphs())
def test_no_checkpoint_gets_another_plan(old: list[SavedStage], new: list[SavedStage]) -> None:
    found = outcomes(old, new)
    states = [item.operator for item in found if item.stream is None]
    assert set(chain.from_iterable(item.stateful for item in (*old, *new))) == set(states)
    if any(item.fate is Fate.IMPOSSIBLE for item in found):
        return
    assert len(states) == len(set(states))
    before = {item.name: item for item in old}
    for item in new:
        if former := before.get(item.name):
            assert (former.stateful, former.inputs) == (item.stateful, item.inputs)
    lasting = {name for item in new for name in item.operators}
    gone = [item for item in old if item.name not in {one.name for one in new}]
    assert not lasting & {name for item in gone for name in item.operators}


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            [stage("read", "parse", "out", reads=("in",)), stage("store", reads=("parsed",))],
            [
                stage("read", "parse", reads=("in",)),
                stage("out", reads=("parsed",)),
                stage("store", reads=("parsed",)),
            ],
            "out would move from stage read to stage out",
        ),
        (
            [stage("read", "out", reads=("in",)), stage("enrich", "other", reads=("read",))],
            [stage("read", reads=("in",)), stage("enrich", "other", "out", reads=("read",))],
            "out would move from stage read to stage enrich",
        ),
        (
            [stage("read", reads=("in",)), stage("enrich", "other", "out", reads=("read",))],
            [stage("read", "out", reads=("in",)), stage("enrich", "other", reads=("read",))],
            "out would move from stage enrich to stage read",
        ),
    ],
    ids=["to a topic that has records", "downstream", "upstream"],
)
def test_no_operator_passes_by_records_on_their_way(
    before: list[SavedStage], after: list[SavedStage], message: str
) -> None:
    """They would get to it twice, or not at all."""
    with pytest.raises(EditRefused, match=f"operator {message}.*savepoint.*new names"):
        check(before, after, drop=())


def test_a_split_is_at_a_topic_that_nobody_has_written_yet() -> None:
    before = [stage("read", "parse", "out", reads=("in",))]
    after = [stage("read", "parse", reads=("in",)), stage("out", reads=("parsed",))]
    check(before, after, drop=(), made=["raw"])
    with pytest.raises(EditRefused, match="out would move from stage read to stage out"):
        check(before, after, drop=(), made=["parsed"])  # by a reader that is gone by now


def with_columns(old: SavedStage, columns: dict[str, str]) -> SavedStage:
    """Return a stage whose only stream has these columns."""
    (item,) = old.inputs
    return old.model_copy(update={"inputs": [item.model_copy(update={"columns": columns})]})


def test_records_on_their_way_have_the_columns_of_before() -> None:
    old = with_columns(COUNT, {"k": "string", "n": "integer"})
    new = with_columns(COUNT, {"k": "string", "n": "long", "bot": "boolean"})
    with pytest.raises(
        EditRefused,
        match=r"stream raw get other columns \(bot is new\).*stage count.*null.*savepoint"
        r".*--change-stream raw",
    ):
        check([READ, old], [READ, new], drop=())
    check([READ, old], [READ, new], drop=(), changed=["raw"])
    assert [(item.stream, item.fate) for item in outcomes([old], [new])] == [
        (None, Fate.KEPT),
        ("raw", Fate.CHANGED),
    ]
    branch = with_columns(stage("branch", reads=("raw",)), {"k": "string"})
    with pytest.raises(EditRefused, match=r"n is gone.*stage branch"):
        check([READ, old], [READ, old, branch], drop=())
    check([READ, COUNT], [READ, new], drop=())  # the old release did not say


def test_records_of_an_export_have_the_columns_of_before() -> None:
    """Whether or not somebody imports them now; another topic has none yet."""

    def exporting(topic: str, **columns: str) -> SavedStage:
        export = SavedExport(stream="visits", topic=topic, columns=columns)
        return READ.model_copy(update={"exports": [export]})

    old, new = exporting("t", k="string"), exporting("t", k="string", n="long")
    with pytest.raises(
        EditRefused,
        match=r"exported stream visits gets other columns \(n is new\).*--change-stream visits",
    ):
        check([old], [new], drop=())
    check([old], [new], drop=(), changed=["visits"])
    check([old], [exporting("u", n="long")], drop=())
    check([READ], [new], drop=())
    check([old], [READ], drop=())


def test_topics_of_one_name_in_two_clusters_are_told_apart_by_their_order() -> None:
    inputs = [SavedInput(stream=name, topic="orders", brokers=[name]) for name in ("eu", "us")]
    before, turned = (READ.model_copy(update={"inputs": each}) for each in (inputs, inputs[::-1]))
    check([before], [before], drop=())
    with pytest.raises(EditRefused, match="reads topic orders from us, and from eu until now"):
        check([before], [turned], drop=())


def test_inputs_in_another_order_are_the_same_inputs() -> None:
    """Positions are found by their topics; so are the brokers that these are at."""
    left, right, elsewhere = (
        SavedInput(stream=name, topic=name, brokers=brokers)
        for name, brokers in (("left", ["one"]), ("right", []), ("right", ["two"]))
    )
    join = stage("join", reads=())
    before, turned, moved = (
        join.model_copy(update={"inputs": inputs})
        for inputs in ([left, right], [right, left], [elsewhere, left])
    )
    assert {item.fate for item in outcomes([before], [turned])} == {Fate.KEPT}
    assert {item.fate for item in outcomes([before], [moved])} == {Fate.IMPOSSIBLE}
