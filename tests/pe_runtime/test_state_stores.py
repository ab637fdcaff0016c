"""State of real queries is dealt out to other key groups: what comes then is what one query says.

Of each division of the keys there is a topic, and a query for each of its partitions. The truth is
one query that reads both topics whole.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.pe_runtime.one_driver import driver
from tests.producers import idempotent

from streamgraft_common.key_groups import Split, origins
from streamgraft_common.restore import NotRestorable
from streamgraft_local import Cluster
from streamgraft_pe_runtime.redistribution import redistribute
from streamgraft_pe_runtime.state_stores import StateStores

pytestmark = pytest.mark.integration

OLD, NEW, KEYS = 2, 3, 30
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
PROVIDERS = ("HDFSBackedStateStoreProvider", "RocksDBStateStoreProvider")
Rows = Counter[tuple[Any, ...]]
Operator = Callable[[DataFrame, DataFrame], DataFrame]


def updating(rows: DataFrame, others: DataFrame) -> DataFrame:
    """Return counts and first occurrences, from one query."""
    counts = rows.groupBy("key").agg(F.count("*").alias("n"))
    distinct = rows.select("key", "n").dropDuplicates()
    return as_records("count", counts, "n").unionAll(as_records("distinct", distinct, "n"))


def appending(rows: DataFrame, others: DataFrame) -> DataFrame:
    """Return windows, sessions, first occurrences and pairs, from one query."""
    timed = rows.withWatermark("time", "10 minutes")
    window = timed.groupBy("key", F.window("time", "5 minutes")).agg(F.count("*").alias("n"))
    in_sessions = timed.groupBy("key", F.session_window("time", "90 seconds"))
    session = in_sessions.agg(F.count("*").alias("n"))
    first = timed.dropDuplicatesWithinWatermark(["key", "n"])
    some = rows.where("n = 0").select("key", "time")
    paired = some.join(others.where("n = 0").select("key", F.col("time").alias("then")), "key")
    return (
        as_records("window", window, "window", "n")
        .unionAll(as_records("session", session, "session_window", "n"))
        .unionAll(as_records("first", first, "n"))
        .unionAll(as_records("paired", paired, "time", "then"))
    )


def shouting(rows: DataFrame, others: DataFrame) -> DataFrame:
    """Return counts by what isn't the records' key any more, but has its name."""
    return as_records(
        "count", rows.withColumn("key", F.upper("key")).groupBy("key").count(), "count"
    )


def as_records(kind: str, rows: DataFrame, *columns: str) -> DataFrame:
    """Return rows of all kinds alike."""
    return rows.select(F.lit(kind).alias("kind"), "key", F.struct(*columns).cast("string"))


@dataclass
class Streams:
    """Two topics, and queries on them."""

    session: SparkSession
    stores: StateStores
    servers: str
    old: str
    new: str

    def send(self, topic: str, minutes: range) -> None:
        """Send a record of each key a minute, with a rest after four of them."""
        producer = idempotent(self.servers, {"partitioner": "murmur2_random"})
        for minute in (item for item in minutes if item % 6 < 4):
            for key in range(KEYS):
                time = f"2026-01-01T{minute // 60:02d}:{minute % 60:02d}:00Z"
                value = {"key": f"k{key}", "n": minute % 7, "time": time}
                producer.produce(topic, json.dumps(value), f"k{key}")
        assert producer.flush(30) == 0

    def run(self, operator: Operator, mode: str, checkpoint: Path, **records: str) -> Rows:
        """Run a query on what is there now, and return its output."""
        found: Rows = Counter()

        def keep(batch: DataFrame, number: int) -> None:
            found.update(tuple(row) for row in batch.collect())

        frame = operator(self._rows(records), self._rows(records))
        writer = frame.writeStream.outputMode(mode).foreachBatch(keep)
        writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        assert writer.start().awaitTermination(60)
        return found

    def _rows(self, records: dict[str, str]) -> DataFrame:
        options = {"kafka.bootstrap.servers": self.servers, "startingOffsets": "earliest"}
        loaded = self.session.readStream.format("kafka").options(**options, **records).load()
        schema = "key string, n int, time timestamp"
        row = F.from_json(F.col("value").cast("string"), schema).alias("row")
        return loaded.select(row).select("row.*")


@pytest.fixture
def streams(cluster: Cluster, namespace: str) -> Iterator[Streams]:
    """Topics of the test."""
    servers = cluster.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers})
    old, new = f"{namespace}-old", f"{namespace}-new"
    for made in admin.create_topics([NewTopic(old, OLD, 1), NewTopic(new, NEW, 1)]).values():
        made.result()
    with driver(cluster, {}) as session:
        yield Streams(session, StateStores(session), servers, old, new)


def shards(topic: str, count: int) -> list[str]:
    return [json.dumps({topic: [number]}) for number in range(count)]


def deal_out(streams: Streams, folder: Path, group: int) -> None:
    sources = {item: folder / f"old-{item}" for item in origins(OLD, NEW, group)}
    split = Split(("key",), OLD, NEW, group)
    topics = {streams.old: streams.new}
    redistribute(sources, folder / f"new-{group}", split, topics, streams.stores)


@pytest.mark.long
def test_queries_go_on_from_state_that_is_dealt_out(streams: Streams, tmp_path: Path) -> None:
    cases = [
        (provider, operator, mode)
        for provider in PROVIDERS
        for operator, mode in ((updating, "update"), (appending, "append"))
    ]
    folders = [tmp_path / str(number) for number in range(len(cases))]
    truth = f"{streams.old},{streams.new}"
    place = "org.apache.spark.sql.execution.streaming.state"

    def select(provider: str) -> None:
        streams.session.conf.set(PROVIDER, f"{place}.{provider}")

    streams.send(streams.old, range(30))
    for folder, (provider, operator, mode) in zip(folders, cases, strict=True):
        select(provider)
        before: Rows = Counter()
        for number, assign in enumerate(shards(streams.old, OLD)):
            before += streams.run(operator, mode, folder / f"old-{number}", assign=assign)
        assert before == streams.run(operator, mode, folder / "truth", subscribe=truth)
        for group in range(NEW):
            deal_out(streams, folder, group)
    streams.send(streams.new, range(25, 60))
    for folder, (provider, operator, mode) in zip(folders, cases, strict=True):
        select(provider)
        after: Rows = Counter()
        for number, assign in enumerate(shards(streams.new, NEW)):
            after += streams.run(operator, mode, folder / f"new-{number}", assign=assign)
        expected = streams.run(operator, mode, folder / "truth", subscribe=truth)
        assert after == expected, (provider, operator)
        assert expected


def test_state_by_another_key_of_the_same_name_is_refused(streams: Streams, tmp_path: Path) -> None:
    streams.send(streams.old, range(1))
    for number, assign in enumerate(shards(streams.old, OLD)):
        streams.run(shouting, "update", tmp_path / f"old-{number}", assign=assign)
    (state,) = streams.stores.describe(tmp_path / "old-0")
    assert (state.operator, state.key) == ("stateStoreSave", ["key"])
    with pytest.raises(NotRestorable, match="key changed on the way"):
        deal_out(streams, tmp_path, 0)
    assert not (tmp_path / "new-0").exists()
