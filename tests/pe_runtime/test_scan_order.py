"""Positions belong to topics, wherever these stand in a plan."""

import json
from collections import Counter
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.pe_runtime.one_driver import make_topic, write

from streamgraft_local import Cluster
from streamgraft_pe_runtime.arrangement import arrange
from streamgraft_pe_runtime.plan import Plan
from streamgraft_pe_runtime.scan_order import (
    OtherTopics,
    OtherWays,
    Scans,
    arranged,
    comes_another_way,
    renamed,
    ways_are_edited,
)
from streamgraft_pe_runtime.spark_log import Offsets, Position, joined

A, B = {"a": {"0": 7}}, {"b": {"0": 9}}


@pytest.mark.parametrize(
    ("positions", "topics", "order"),
    [
        ([A, B], ["a", "b"], None),
        ([A, B], ["b", "a"], [1, 0]),
        ([A, B], ["b", "a", "b"], [1, 0, 1]),
        ([A, A, B], ["a", "b"], [0, 2]),
        ([A, {}], ["b", "a"], None),
        ([{**A, **B}], ["b"], None),
    ],
)
def test_each_scan_goes_on_where_its_topic_was(
    positions: list[Offsets], topics: list[str], order: list[int] | None
) -> None:
    assert arranged(positions, Scans(topics)) == order


@pytest.mark.parametrize("noted", [[], ["a", "a"], ["a#x", "a#x"]])
def test_several_sources_of_one_name_have_their_places(noted: list[str]) -> None:
    """As Spark makes of some joins of a stream with itself; they end at different records."""
    positions = [{"a": {"0": 7}}, {"a": {"0": 8}}]
    assert arranged(positions, Scans(noted or ["a", "a"]), Scans(noted)) is None
    more = [*positions, B]
    assert arranged(more, Scans(["b", "a", "a"]), Scans(["a", "a", "b"])) == [2, 0, 1]


def test_a_cluster_that_goes_leaves_the_other_one_its_positions() -> None:
    eu, us = {"a": {"0": 7}}, {"a": {"0": 9}}
    both = Scans(["a@e:1#eu", "a@u:1#us"])
    assert arranged([eu, us], Scans(["a#us"]), both) == [1]
    assert arranged([eu], Scans(["a@e:1#eu"]), Scans(["a#eu"])) is None
    assert arranged([eu, us], Scans(["a@u:1,u:2#us", "a@e:1#eu"]), both) == [1, 0]


def test_a_cluster_that_comes_does_not_begin_where_the_other_one_is() -> None:
    with pytest.raises(OtherTopics, match="it reads a@u:1, in which"):
        arranged([{"a": {"0": 7}}], Scans(["a@e:1#eu", "a@u:1#us"]), Scans(["a#eu"]))


SHARED, RATE = {"x": {"0": 1}, "y": {"0": 2}}, {"offset": 3}


@pytest.mark.parametrize(
    ("names", "order"),
    [
        (["import i", "a", "source rate"], None),
        (["a", "import i", "source rate"], [1, 0, 2]),
        (["source rate", "a", "import j", "import j"], [2, 1, 0, 0]),
        (["source sockets", "import i"], [2, 0]),
    ],
)
def test_what_is_no_topic_goes_by_its_name(names: list[str], order: list[int] | None) -> None:
    """Or as the only one of its kind that is not there any more: topics come and go in imports."""
    before = Scans(["import i", "a", "source rate"])
    positions: list[Any] = [SHARED, A, RATE]
    assert arranged(positions, Scans(names), before) == order
    assert arranged([{}, A, {}], Scans(names), before) in (order, None)
    assert arranged(positions, Scans(names)) is None, "without a note each has its place"


@pytest.mark.parametrize("names", [["import i", "import j"], ["a", "import i", "import j"]])
def test_an_import_without_a_position_is_told(names: list[str]) -> None:
    with pytest.raises(OtherTopics, match="it reads import j, in which"):
        arranged([SHARED, A], Scans(names), Scans(["import i", "a"]))


def test_two_imports_change_places() -> None:
    """Spark would give each the positions of the other: it would begin anew in its own topics."""
    before, now = Scans(["import i", "import j"]), Scans(["import j", "import i"])
    assert arranged([SHARED, {"z": {"0": 5}}], now, before) == [1, 0]
    assert arranged([SHARED, {}], now, before) == [1, 0]


def test_a_topic_without_a_position_is_told() -> None:
    with pytest.raises(OtherTopics, match="it reads c, in which its checkpoint has no position"):
        arranged([A, B], Scans(["a", "c"]))


LATER = {"a": {"0": 8}}
WAYS = ["a#1", "a#2"]


@pytest.mark.parametrize(
    ("positions", "topics", "noted", "order"),
    [
        ([A, LATER], ["a#2", "a#1"], WAYS, [1, 0]),
        ([A, LATER], ["a#2"], WAYS, [1]),
        ([A, LATER], ["a#3", "a#1"], WAYS, [1, 0]),
        ([A, LATER], ["a#3", "a#1", "a#2"], WAYS, [0, 0, 1]),
        ([A, LATER], WAYS, [], None),
        ([A], WAYS, ["a#0"], [0, 0]),
        ([A, A], ["a#3", "a#4"], WAYS, None),
        ([A, A], ["a#0"], WAYS, [0]),
        ([A, LATER, B], ["b#3", "a#1"], [*WAYS, "b#3"], [2, 0]),
    ],
)
def test_each_way_goes_on_where_it_was(
    positions: list[Offsets], topics: list[str], noted: list[str], order: list[int] | None
) -> None:
    """Also under another name, if it is the only one that is not there any more."""
    assert arranged(positions, Scans(topics), Scans(noted)) == order


@pytest.mark.parametrize("topics", [["a#3", "a#4"], ["a#3"], ["a#0", "a#0"]])
def test_ways_that_can_not_be_told_apart_are_refused(topics: list[str]) -> None:
    """Two have other names; or rows go all ways from one scan again, in micro-batches."""
    with pytest.raises(OtherWays, match="it read a in several ways"):
        arranged([A, LATER], Scans(topics), Scans(WAYS))


OUTPUTS = {"1": ["x"], "2": ["y"]}
BEFORE = Scans(WAYS, OUTPUTS)


@pytest.mark.parametrize(
    ("names", "outputs", "order"),
    [
        (["a#1", "a#2"], {"1": ["y"], "2": ["x"]}, [1, 0]),
        (["a#1", "a#2", "a#3"], {"1": ["x"], "2": ["z"], "3": ["y"]}, [0, 1, 1]),
        (["a#1", "a#3"], {"1": ["x", "z"], "3": ["y"]}, None),
        (["a#3", "a#4"], {"3": ["y"], "4": ["x"]}, [1, 0]),
        (["a#3", "a#4"], {"3": ["z"], "4": ["x"]}, [1, 0]),
        (["a#1", "a#2", "a#3"], {**OUTPUTS, "3": ["z"]}, [0, 1, 0]),
        (["a#3"], {"3": ["y"]}, [1]),
        (["a#2"], {"2": ["x"]}, [0]),
        (["a#3", "a#4"], {"3": ["x"], "4": ["x"]}, [0, 0]),
    ],
)
def test_an_output_goes_on_where_its_way_was(
    names: list[str], outputs: dict[str, list[str]], order: list[int] | None
) -> None:
    """Whichever way its rows go now; what is new begins where a way is that has gone, or any."""
    assert arranged([A, LATER], Scans(names, outputs), BEFORE) == order


@pytest.mark.parametrize("way", WAYS)
def test_outputs_of_several_ways_can_not_go_one(way: str) -> None:
    """One of them would lose records, or get them twice."""
    outputs = {way[-1]: ["x", "y"]}
    with pytest.raises(OtherWays):
        arranged([A, LATER], Scans([way], outputs), BEFORE)
    assert arranged([A, A], Scans([way], outputs), BEFORE) == [0]


def test_a_topic_that_one_way_reads_twice() -> None:
    """Its scans have the same outputs, and go on each where it was."""
    both = {"1": ["x"], "2": ["x"]}
    before = Scans(WAYS, both)
    assert arranged([A, LATER], Scans(["a#2", "a#1"], both), before) == [1, 0]
    more = Scans([*WAYS, "a#3"], {**both, "3": ["x"]})
    assert arranged([A, LATER], more, before) == [0, 1, 0], "it is one more"
    other = Scans(["a#1", "a#3"], {"1": ["x"], "3": ["x"]})
    assert arranged([A, LATER], other, before) is None, "it has another name"
    others = Scans(["a#3", "a#4"], {"3": ["x"], "4": ["x"]})
    with pytest.raises(OtherWays):
        arranged([A, LATER], others, before)


def test_an_output_that_leaves_a_way_which_stays() -> None:
    """It had rows of both ways; the one that it goes now goes on where the first one was."""
    before = Scans(WAYS, {"1": ["x", "y"], "2": ["y"]})
    now = Scans(["a#1", "a#2", "a#3"], {"1": ["x"], "2": ["y"], "3": ["y"]})
    assert arranged([A, LATER], now, before) == [0, 1, 0]


@pytest.mark.parametrize(
    ("names", "outputs", "edited"),
    [
        (WAYS, OUTPUTS, False),
        (WAYS, {"1": ["x", "z"], "2": ["y"]}, False),
        ([*WAYS, "a#3"], {**OUTPUTS, "3": ["z"]}, False),
        (["a#1"], {"1": ["x"]}, False),
        (["a#1"], {"1": ["x", "y"]}, True),
        (WAYS, {"1": ["z", "x"], "2": ["y"]}, True),
        (WAYS, {"1": [], "2": ["y"]}, True),
        ([*WAYS, "a#3"], {"1": ["x"], "2": [], "3": ["y"]}, True),
        (["a#1", "a#3"], {"1": ["x"], "3": ["z"]}, True),
        (["a#1", "a#3"], {"1": ["x"], "3": ["y"]}, True),
    ],
)
def test_what_a_ledger_can_not_tell_any_more(
    names: list[str], outputs: dict[str, list[str]], edited: bool
) -> None:
    """It counts the rows of a record over all outputs of a way, in their order."""
    assert ways_are_edited(BEFORE, Scans(names, outputs)) == edited


@pytest.mark.parametrize(
    ("outputs", "other"),
    [
        ({"1": ["o>x", "y"]}, False),
        ({"1": ["new>z", "o>x"]}, False),
        ({"1": ["o>x"], "3": ["o>x"]}, False),
        ({"1": ["y"]}, False),
        ({"3": ["y"]}, False),
        ({"3": ["o>x"]}, True),
        ({"1": ["y"], "3": ["o>x"]}, True),
    ],
)
def test_rows_that_come_again_by_another_way(outputs: dict[str, list[str]], other: bool) -> None:
    """A sink has them twice in any case."""
    before = Scans(["a#1"], {"1": ["o>x", "y"]})
    assert comes_another_way(before, Scans([f"a#{way}" for way in outputs], outputs)) == other


def test_a_topic_that_was_renamed() -> None:
    topics = {"a": "b"}
    names = [renamed(name, topics) for name in ("a", "a@e:1#2", "a#2", "ab#1")]
    assert names == ["b", "b@e:1#2", "b#2", "ab#1"]


def test_shards_of_different_plans_join() -> None:
    """One has run the plan of before an edit, and one that of behind it."""
    other = {"a": {"1": 3}}, {"b": {"1": 4}}
    positions = {
        0: Position((A, B), {"conf": {}}, {}),
        1: Position((other[1], other[0], other[1]), {"conf": {}}, {}),
    }
    assert joined(positions).sources == ({"a": {"0": 7, "1": 3}}, {"b": {"0": 9, "1": 4}})


def test_ways_that_ended_at_different_records_stay_apart() -> None:
    """A joint query would take one of them for both."""
    positions = {
        0: Position((A, LATER), {"conf": {}}, {}),
        1: Position(({"a": {"1": 3}}, {"a": {"1": 3}}), {"conf": {}}, {}),
    }
    assert joined(positions).sources == ({"a": {"0": 7, "1": 3}}, {"a": {"0": 8, "1": 3}})


def ran(
    session: SparkSession, cluster: Cluster, checkpoint: Path, topics: Sequence[str]
) -> Counter[int]:
    """Run a query over a union of topics until it has read all; return what its batches had."""
    options = {
        "kafka.bootstrap.servers": cluster.bootstrap_servers,
        "startingOffsets": "earliest",
    }
    frames = {
        topic: session.readStream.format("kafka").options(**options, subscribe=topic).load()
        for topic in set(topics)
    }
    whole = reduce(DataFrame.unionAll, (frames[topic].select("value") for topic in topics))
    arrange(checkpoint, Plan(whole, [], "append").topics)
    found = Counter[int]()

    def take(rows: DataFrame, _: int) -> None:
        found.update(json.loads(row["value"])["n"] for row in rows.collect())

    running = whole.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint))
    assert running.trigger(availableNow=True).start().awaitTermination(60)
    return found


@pytest.mark.integration
def test_a_union_is_turned_round_and_grows(
    session: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    """Spark itself refuses the checkpoint, or reads a topic from the other one's position."""
    first, second = make_topic(cluster), make_topic(cluster)
    write(cluster, first, range(3))
    write(cluster, second, range(10, 15))
    before = Counter([*range(3), *range(10, 15)])
    assert ran(session, cluster, tmp_path, [first, second]) == before
    write(cluster, first, range(3, 4))
    write(cluster, second, range(15, 16))
    assert ran(session, cluster, tmp_path, [second, first, second]) == {3: 1, 15: 2}
    write(cluster, second, range(16, 17))
    assert ran(session, cluster, tmp_path, [first, second]) == {16: 1}
