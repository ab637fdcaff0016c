"""Positions belong to topics, wherever these stand in a plan."""

import json
from collections import Counter
from collections.abc import Sequence
from functools import reduce
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.pe_runtime.one_driver import make_topic, write

from streamgraft_local import Cluster
from streamgraft_pe_runtime.checkpoint_files import LEDGERS, REAL_TIME
from streamgraft_pe_runtime.plan import Plan
from streamgraft_pe_runtime.scan_order import (
    NOTE,
    OtherTopics,
    OtherWays,
    RenamedWays,
    arrange,
    arranged,
    ended,
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
    assert arranged(positions, topics) == order


@pytest.mark.parametrize("noted", [[], ["a", "a"], ["a#x", "a#x"]])
def test_several_sources_of_one_name_have_their_places(noted: list[str]) -> None:
    """As Spark makes of some joins of a stream with itself; they end at different records."""
    positions = [{"a": {"0": 7}}, {"a": {"0": 8}}]
    assert arranged(positions, noted or ["a", "a"], noted) is None
    more = [*positions, B]
    assert arranged(more, ["b", "a", "a"], ["a", "a", "b"]) == [2, 0, 1]


def test_a_cluster_that_goes_leaves_the_other_one_its_positions() -> None:
    eu, us = {"a": {"0": 7}}, {"a": {"0": 9}}
    assert arranged([eu, us], ["a#us"], ["a@e:1#eu", "a@u:1#us"]) == [1]
    assert arranged([eu], ["a@e:1#eu"], ["a#eu"]) is None
    assert arranged([eu, us], ["a@u:1,u:2#us", "a@e:1#eu"], ["a@e:1#eu", "a@u:1#us"]) == [1, 0]


def test_no_way_is_renamed_while_its_batch_is_cut_off(tmp_path: Path) -> None:
    """The ledger knows what is written by the ways that rows went."""
    log = tmp_path / "offsets"
    log.mkdir()
    (log / "0").write_text("v1\n{}\n" + json.dumps(A))
    arrange(tmp_path, ["a#doubled"])
    mark = tmp_path / LEDGERS / REAL_TIME
    mark.parent.mkdir()
    mark.touch()
    arrange(tmp_path, ["a#doubled", "a#more"])
    arrange(tmp_path, ["a#doubled"])
    with pytest.raises(RenamedWays, match="rows went by doubled, and now would by twice"):
        arrange(tmp_path, ["a#twice"])
    mark.unlink()
    arrange(tmp_path, ["a#twice"])


def test_where_a_batch_has_ended_is_told_by_way(tmp_path: Path) -> None:
    """As the ledger tells it: before the first batch, where that begins."""
    assert ended(tmp_path) == ""
    (tmp_path / NOTE).write_text(json.dumps(["a#1", "b@u:1#2", "c#3"]))
    assert ended(tmp_path) == ""
    for number, source in enumerate([{"a": {"0": 7, "1": 8}}, B, {}]):
        (tmp_path / "sources" / str(number)).mkdir(parents=True)
        (tmp_path / "sources" / str(number) / "0").write_text(f"\0v1\n{json.dumps(source)}")
    assert ended(tmp_path) == "1/a:0=7;1=8,2/b:0=9"
    for log, text in (("offsets", f"v1\n{{}}\n{json.dumps(LATER)}\n-\n-"), ("commits", "v1\n{}")):
        (tmp_path / log).mkdir()
        (tmp_path / log / "0").write_text(text)
    assert ended(tmp_path) == "1/a:0=8"
    (tmp_path / NOTE).write_text(json.dumps(["a#1"]))
    assert ended(tmp_path) == "", "its note is of another plan"
    (tmp_path / NOTE).write_text(json.dumps(["a", "b", "c"]))
    assert ended(tmp_path) == "", "it has no ways"


def test_a_topic_without_a_position_is_told() -> None:
    with pytest.raises(OtherTopics, match="it reads c, in which its checkpoint has no position"):
        arranged([A, B], ["a", "c"])


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
    assert arranged(positions, topics, noted) == order


@pytest.mark.parametrize("topics", [["a#3", "a#4"], ["a#3"], ["a#0", "a#0"]])
def test_ways_that_can_not_be_told_apart_are_refused(topics: list[str]) -> None:
    """Two have other names; or rows go all ways from one scan again, in micro-batches."""
    with pytest.raises(OtherWays, match="it read a in several ways"):
        arranged([A, LATER], topics, WAYS)


def test_where_ways_began_does_not_count_behind_a_batch(tmp_path: Path) -> None:
    for number, source in enumerate((A, LATER)):
        (tmp_path / "sources" / str(number)).mkdir(parents=True)
        (tmp_path / "sources" / str(number) / "0").write_text(f"\0v1\n{json.dumps(source)}")
    with pytest.raises(OtherWays):
        arrange(tmp_path, ["a#0", "a#0"])
    for log in ("offsets", "commits"):
        (tmp_path / log).mkdir()
        (tmp_path / log / "0").write_text("v1\n{}\n" + "\n".join(map(json.dumps, (B, B))))
    arrange(tmp_path, ["b#0", "b#0"])


def test_files_that_are_in_order_are_left_alone(tmp_path: Path) -> None:
    """And so are those of a plan with a scan whose topic nobody knows."""
    log = tmp_path / "offsets"
    log.mkdir()
    text = "v1\n{}\n" + "\n".join(map(json.dumps, (A, B)))
    for number in range(3):
        (log / str(number)).write_text(text)
    before = [(log / str(number)).stat().st_ino for number in range(3)]
    arrange(tmp_path, ["a", "b"])
    arrange(tmp_path, ["b", None])
    assert [(log / str(number)).stat().st_ino for number in range(3)] == before
    arrange(tmp_path, ["b", "a"])
    swapped = "v1\n{}\n" + "\n".join(map(json.dumps, (B, A)))
    assert [(log / str(number)).read_text() for number in range(3)] == [text, swapped, swapped]


def test_topics_of_one_name_in_two_clusters(tmp_path: Path) -> None:
    """Which positions are whose is noted; where it was not, the order counts."""
    log, eu, us = tmp_path / "offsets", {"a": {"0": 7}}, {"a": {"0": 9}}
    log.mkdir()
    (log / "0").write_text("v1\n{}\n" + "\n".join(map(json.dumps, (eu, us))))
    arrange(tmp_path, ["a@eu", "a@us"])
    arrange(tmp_path, ["a@us", "a@eu", "a@us"])
    assert (log / "0").read_text() == "v1\n{}\n" + "\n".join(map(json.dumps, (us, eu, us)))
    arrange(tmp_path, ["a@eu", "a@us"])
    assert (log / "0").read_text() == "v1\n{}\n" + "\n".join(map(json.dumps, (eu, us)))
    with pytest.raises(OtherTopics, match="it reads a@asia"):
        arrange(tmp_path, ["a@eu", "a@asia"])


def test_where_a_query_began_is_put_in_order_too(tmp_path: Path) -> None:
    for number, source in enumerate((A, B)):
        (tmp_path / "sources" / str(number)).mkdir(parents=True)
        (tmp_path / "sources" / str(number) / "0").write_text(f"\0v1\n{json.dumps(source)}")
    arrange(tmp_path, ["b", "b", "a"])
    found = [(tmp_path / "sources" / name / "0").read_text() for name in "01"]
    assert found == [f"\0v1\n{json.dumps(source)}" for source in (B, A)]


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
