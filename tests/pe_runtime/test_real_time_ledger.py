"""The positions in the sources, as real-time mode notes them in the offset of a consumer group."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from tests.pe_runtime.one_driver import make_topic

from streamgraft_local import Cluster
from streamgraft_pe_runtime.modes import may_be_repeated

pytestmark = pytest.mark.integration

OFFSET = 10**10 - 1
SCAN = 2**31 - 1
FAR_APART = 10_000
"""Milliseconds between two commits: they are made by hand here."""


class Outlet:
    """A query's sink in real-time mode, without the query."""

    def __init__(self, session: SparkSession, cluster: Cluster, checkpoint: Path) -> None:
        jvm: Any = session._jvm
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

    def close(self, clean: bool) -> None:
        """End the run."""
        self._package.Owners.close(self._checkpoint, clean)


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
    found.close(clean=False)


def test_many_partitions_with_a_long_name(outlet: Outlet) -> None:
    """They fit into what brokers take of an offset, and are there after a crash."""
    topic = "t" * 249
    outlet.open()
    outlet.write(topic, 249, OFFSET)
    outlet.commit()
    outlet.write(topic, 1, OFFSET, rows=2)
    outlet.commit()
    outlet.close(clean=False)
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


def test_too_many_partitions(outlet: Outlet) -> None:
    """The error says what to do."""
    outlet.open()
    outlet.write("topic", 400, OFFSET)
    with pytest.raises(Py4JJavaError, match=r"offset\.metadata\.max\.bytes.*at_least_once"):
        outlet.commit()
