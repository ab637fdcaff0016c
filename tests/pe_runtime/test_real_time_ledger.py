"""The positions in the sources, as real-time mode notes them in the offset of a consumer group."""

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from tests.pe_runtime.one_driver import make_topic

from streamgraft_local import Cluster
from streamgraft_pe_runtime.checkpoint_files import LEDGERS
from streamgraft_pe_runtime.modes import may_be_repeated
from streamgraft_pe_runtime.targets import MAIN

pytestmark = pytest.mark.integration

OFFSET = 10**10 - 1
SCAN = 2**31 - 1
FAR_APART = 10_000
"""Milliseconds between two commits: they are made by hand here."""


class Outlet:
    """A query's sink in real-time mode, without the query."""

    def __init__(self, session: SparkSession, cluster: Cluster, checkpoint: Path) -> None:
        jvm: Any = session._jvm
        self._session, self._servers = session, cluster.bootstrap_servers
        self.topic = make_topic(cluster)
        self._jvm, self._package = jvm, jvm.org.apache.spark.sql.kafka010.exactlyonce
        self._checkpoint = str(checkpoint)
        self._options = {
            "checkpointLocation": self._checkpoint,
            "kafka.bootstrap.servers": cluster.bootstrap_servers,
            "topic": self.topic,
            "transactionalId": f"ledger-{uuid.uuid4()}",
            "realTime": "true",
            "commitMillis": str(FAR_APART),
        }
        self._owner: Any = None

    def move_ledger(self, topic: str) -> None:
        """Have it at another topic in the next run."""
        self._options["ledgerTopic"] = topic

    def leave_real_time(self) -> None:
        """Have the next run write micro-batches."""
        del self._options["realTime"]

    def open(self) -> None:
        """Begin a run."""
        options = self._jvm.java.util.HashMap(self._options)
        spark = self._jvm.org.apache.spark.sql.util
        settings = self._package.Settings.apply(spark.CaseInsensitiveStringMap(options))
        self._owner = self._package.Owners.open(settings)

    def write(self, topic: str, partitions: int, offset: int, rows: int = 1) -> None:
        """Write the `rows`-th row of a record in each partition of a source."""
        producer = self._jvm.org.apache.kafka.clients.producer
        for partition in range(partitions):
            self._owner.realTime().get().write(
                self._package.Lane(SCAN, topic, partition),
                self._package.Position(offset, rows),
                producer.ProducerRecord(self.topic, b"n"),
            )

    def commit(self) -> None:
        """End the transaction."""
        self._owner.realTime().get().commit()

    def end_batch(self) -> None:
        """End a batch, behind which its log is written."""
        self._owner.commit(0)

    def noted(self) -> dict[str, tuple[int, int]]:
        """Return offset and rows by the name of a lane, as the ledger has them."""
        transactions = self._owner.realTime().get().transactions()
        return parsed(self._package, transactions.last().plan())

    def overtaken(self) -> Callable[[str], bool]:
        """Begin a run as another driver does; return `close` of the one before."""
        before, positions = self._owner, self._package.RealTimeOutlet.parsed
        self.open()
        self.noted()
        return lambda ended: bool(before.close(positions(ended)))

    def written(self) -> int:
        """Return how many rows readers see."""
        options = {
            "kafka.bootstrap.servers": self._servers,
            "kafka.isolation.level": "read_committed",
            "subscribe": self.topic,
        }
        return self._session.read.format("kafka").options(**options).load().count()

    def close(self, ended: str | None = None) -> bool:
        """End the run; return whether its ledger is over. `ended`: where its last batch ended."""
        return bool(self._package.Owners.close(self._checkpoint, ended))


def parsed(package: Any, text: str) -> dict[str, tuple[int, int]]:
    """Return offset and rows by the name of a lane."""
    found = package.RealTimeOutlet.parsed(text).get().toList()
    pairs = [found.apply(index) for index in range(found.size())]
    return {str(pair._1()): (pair._2().offset(), pair._2().rows()) for pair in pairs}


@pytest.fixture
def outlet(session: SparkSession, cluster: Cluster, tmp_path: Path) -> Iterator[Outlet]:
    """A sink that is not open yet."""
    found = Outlet(session, cluster, tmp_path)
    yield found
    found.close()


def test_many_partitions_with_a_long_name(outlet: Outlet) -> None:
    """They fit into what brokers take of an offset, and are there after a crash."""
    topic = "t" * 249
    outlet.open()
    outlet.write(topic, 249, OFFSET)
    outlet.commit()
    outlet.write(topic, 1, OFFSET, rows=2)
    outlet.commit()
    outlet.close()
    outlet.open()
    expected = {f"Lane({SCAN},{topic},{partition})": (OFFSET, 1) for partition in range(249)}
    assert outlet.noted() == expected | {f"Lane({SCAN},{topic},0)": (OFFSET, 2)}


@pytest.mark.parametrize("rows", [0, 1])
def test_that_the_mode_has_begun_is_marked(outlet: Outlet, tmp_path: Path, rows: int) -> None:
    """Before its first row is written, or its first batch has a log, but not by its start."""
    outlet.open()
    assert not may_be_repeated(tmp_path)
    outlet.write("topic", rows, OFFSET)
    assert may_be_repeated(tmp_path) == bool(rows)
    outlet.end_batch()
    assert may_be_repeated(tmp_path)


@pytest.mark.parametrize("again", [0, 1])
def test_a_ledger_counts_until_batches_have_come_past_it(outlet: Outlet, again: int) -> None:
    """A batch that was cut off may run again for a while only, or not at all, until a stop."""
    outlet.open()
    outlet.write("topic", 2, offset=7)
    outlet.commit()
    outlet.close()
    for ended in (None, "", f"{SCAN}/topic:0=7;1=8", f"{SCAN}/topic:0=8"):
        outlet.open()
        outlet.write("topic", again, offset=6)
        assert outlet.noted() == {f"Lane({SCAN},topic,{number})": (7, 1) for number in (0, 1)}
        assert not outlet.close(ended)
    outlet.open()
    outlet.write("topic", again, offset=6)
    outlet.noted()
    assert outlet.close(f"{SCAN}/topic:0=8;1=8,{SCAN - 1}/topic:0=1")
    outlet.open()
    assert outlet.noted() == {}


@pytest.mark.parametrize("rows", [0, 1])
def test_a_run_that_another_has_fenced_leaves_the_ledger(
    outlet: Outlet, tmp_path: Path, rows: int
) -> None:
    """It was frozen amid a batch, writes nothing any more, and is stopped behind that batch."""
    outlet.open()
    outlet.write("topic", rows, offset=6)
    outlet.commit()
    outlet.noted()
    close = outlet.overtaken()
    outlet.write("topic", 1, offset=7)
    outlet.commit()
    assert not close(f"{SCAN}/topic:0=7" if rows else f"{SCAN}/topic:0=8")
    assert (tmp_path / LEDGERS / MAIN).exists()
    outlet.close()
    outlet.open()
    outlet.write("topic", 1, offset=7)
    outlet.commit()
    assert outlet.written() == rows + 1


def test_a_run_of_micro_batches_ends_no_ledger_of_real_time_mode(outlet: Outlet) -> None:
    """The mark that there is one would be that of a run that has begun since."""
    outlet.leave_real_time()
    outlet.open()
    assert not outlet.close("")


def test_the_newest_positions_count_whichever_topic_they_are_at(
    outlet: Outlet, cluster: Cluster
) -> None:
    """They move with the topic of the first sink. At a former one are older ones, or fewer."""
    topics = [make_topic(cluster) for _ in range(2)]
    for partitions, offset, rows in ((1, 0, 1), (2, 0, 1), (2, 0, 2), (2, 1, 1)):
        topics.reverse()
        outlet.move_ledger(topics[0])
        outlet.open()
        outlet.write("topic", partitions, offset, rows)
        outlet.commit()
        outlet.close()
    for topic in topics:
        outlet.move_ledger(topic)
        outlet.open()
        assert outlet.noted() == {f"Lane({SCAN},topic,{number})": (1, 1) for number in (0, 1)}
        outlet.close()


def test_what_is_not_read_any_more_has_no_say(outlet: Outlet) -> None:
    outlet.open()
    outlet.write("topic", 1, offset=7)
    outlet.commit()
    assert outlet.close(f"{SCAN}/other:0=1,{SCAN - 1}/topic:0=1")


def test_too_many_partitions(outlet: Outlet) -> None:
    """The error says what to do."""
    outlet.open()
    outlet.write("topic", 400, OFFSET)
    with pytest.raises(Py4JJavaError, match=r"offset\.metadata\.max\.bytes.*at_least_once"):
        outlet.commit()
