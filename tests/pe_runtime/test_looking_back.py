"""How far a reader looks back for repeats that has seen nothing before, on real Spark and Kafka.

Each batch is read by itself here, from one offset to another, so that what a reader can know of
earlier ones is in the test's hand.
"""

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tests.pe_runtime.one_driver import driver
from tests.producers import idempotent

from streamgraft_common.pe_metadata import InputPort
from streamgraft_local import Cluster
from streamgraft_pe_runtime import repeats
from streamgraft_pe_runtime.repeats import HEADER

pytestmark = pytest.mark.integration

NOW = int(time.time())
SINCE = NOW - 60
NOWHERE = {"kafka.bootstrap.servers": "localhost:1", "kafka.default.api.timeout.ms": "1000"}
"""Options of a reader that can look nothing up."""


@pytest.fixture(scope="module")
def session(cluster: Cluster) -> Iterator[SparkSession]:
    """A driver with the settings of a PE."""
    with driver(cluster, {}, slots=2) as found:
        yield found


class Stream:
    """A topic with one partition, and those that read it."""

    def __init__(self, session: SparkSession, cluster: Cluster, folder: Path) -> None:
        self._session = session
        self.servers = cluster.bootstrap_servers
        self.topic = f"hop-{uuid.uuid4().hex[:8]}"
        self.folder = folder
        self.admin = AdminClient({"bootstrap.servers": self.servers})
        self.admin.create_topics([NewTopic(self.topic, 1, 1)])[self.topic].result()
        (folder / "0").mkdir()
        self._port = InputPort.model_validate(
            {
                "port": 0,
                "stream": "hop",
                "topic": self.topic,
                "partitions": 1,
                "bootstrap_servers": self.servers,
                "operator": "reader",
                "repeats": True,
            }
        )
        repeats.keep_notes(session, folder, [self._port])

    def send(
        self, rows: Sequence[int | None], at: float = NOW, producer: Producer | None = None
    ) -> None:
        """Write rows of a lane, by their numbers; None: a record that says nothing of its origin.
        `at`: when they were written, in seconds."""
        sender = producer or idempotent(self.servers)
        for row in rows:
            header = [] if row is None else [(HEADER, f"2.{SINCE}.run/0/in/0/{row}/1".encode())]
            sender.produce(
                self.topic, b"", partition=0, timestamp=round(at * 1000), headers=[*header]
            )
        assert sender.flush(30) == 0

    def read(
        self, begin: int, end: int, *, way: int = 0, run: str = "", **options: dict[str, str]
    ) -> list[int]:
        """Return the offsets of a batch that are new to the reader of a way, in a run of its query
        (none of before, if it has no name). `options`: looking, reading: of Kafka's clients."""
        servers = {"kafka.bootstrap.servers": self.servers}
        spans = {
            name: json.dumps({self.topic: {"0": offset}})
            for name, offset in (("startingOffsets", begin), ("endingOffsets", end))
        }
        source = {"assign": json.dumps({self.topic: [0]}), "includeHeaders": "true", **spans}
        self._session.sparkContext.setJobGroup(run or uuid.uuid4().hex, "", interruptOnCancel=True)
        reader = self._session.read.format("kafka")
        records = reader.options(**source, **servers, **options.get("reading", {})).load()
        passed = self._passed(records, way, {**servers, **options.get("looking", {})})
        return [row.offset for row in passed.collect()]

    def follow(self, checkpoint: Path, seen: list[int]) -> StreamingQuery:
        """Start a query that reads on, and can look nothing up; `seen`: what is new to it."""
        source = {"assign": json.dumps({self.topic: [0]}), "includeHeaders": "true"}
        begin = {"startingOffsets": "earliest", "kafka.bootstrap.servers": self.servers}
        records = self._session.readStream.format("kafka").options(**source, **begin).load()

        def see(batch: DataFrame, number: int) -> None:
            seen.extend(row.offset for row in batch.collect())

        writer = self._passed(records, 0, NOWHERE).writeStream.foreachBatch(see)
        return writer.option("checkpointLocation", str(checkpoint)).start()

    def _passed(self, records: DataFrame, way: int, looking: dict[str, str]) -> DataFrame:
        metadata: Any = SimpleNamespace(region=None)
        return repeats.dropped(records, self._port, way, metadata, looking).select("offset")

    def cancel(self, run: str) -> None:
        """Interrupt what a run of a query does."""
        self._session.sparkContext.cancelJobGroup(run)

    def note(self, way: int) -> list[int]:
        """Return what the reader of a way has noted: the next offset, from which on, since when."""
        (file,) = self.folder.glob(f"0/repeats-*-{way}-0")
        return [int(number) for number in file.read_text().splitlines()[0].split()]


@pytest.fixture
def stream(session: SparkSession, cluster: Cluster, tmp_path: Path) -> Stream:
    """A stream that nobody has read."""
    return Stream(session, cluster, tmp_path)


def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_nothing_is_looked_through_before_a_record_says_what_it_is(stream: Stream) -> None:
    """As long as those are read whose writer can't repeat them."""
    stream.send([None] * 20)
    assert stream.read(10, 15, looking=NOWHERE) == [*range(10, 15)]
    assert stream.read(15, 20, looking=NOWHERE) == [*range(15, 20)]


def test_a_reader_looks_back_to_where_repeats_may_begin(stream: Stream) -> None:
    """Its writer has said so since then; what is older is not read. Another way goes on there."""
    stream.send([None] * 100, at=NOW - 7200)
    stream.send([*range(10)])
    stream.send([*range(5, 11)])
    assert stream.read(110, 116) == [115]
    assert stream.note(0) == [110, 100, SINCE]
    stream.send([10, 11])
    assert stream.read(116, 118, way=1) == [117]
    assert stream.note(1) == [116, 100, SINCE]


def test_branches_read_the_same_records(stream: Stream) -> None:
    """One after the other, in one run of a query, with what was before them."""
    stream.send([None, 0, 1, 2])
    stream.send([1, 2, 3])
    for _ in range(2):
        assert stream.read(4, 7, run="a") == [6]
    stream.send([3, 4])
    for _ in range(2):
        assert stream.read(7, 9, run="a") == [8]


def test_who_is_interrupted_goes_on_there(stream: Stream) -> None:
    """Also if that is another pod, here one by another way: what was before is gone by then."""
    stream.send([*range(10)])
    open_ = Producer({"bootstrap.servers": stream.servers, "transactional.id": stream.topic})
    open_.init_transactions()
    open_.begin_transaction()
    stream.send([None], producer=open_)  # no reader of what is committed comes past it
    stream.send([*range(11)])
    failures: list[BaseException] = []
    uncommitted = {"kafka.isolation.level": "read_uncommitted"}

    def read() -> None:
        try:
            stream.read(11, 22, run=stream.topic, reading=uncommitted)
        except Py4JJavaError as error:
            failures.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    until(lambda: any(stream.folder.glob("0/repeats-*")))
    stream.cancel(stream.topic)
    thread.join(30)
    assert len(failures) == 1
    assert stream.note(0) == [10, 0, SINCE]
    open_.commit_transaction()
    gone = stream.admin.delete_records([TopicPartition(stream.topic, 0, 10)])
    for future in gone.values():
        future.result()
    assert stream.read(11, 23, way=1) == [21]


def test_ends_of_transactions_are_not_looked_at(stream: Stream) -> None:
    """Between the batches of one run of a query; another run does not know what is there."""
    sender = Producer({"bootstrap.servers": stream.servers, "transactional.id": stream.topic})
    sender.init_transactions()
    for row in (0, 0, 1, None, 1):
        sender.begin_transaction()
        stream.send([row], producer=sender)
        sender.commit_transaction()
    found = [stream.read(2 * n, 2 * n + 1, run="a", looking=NOWHERE) for n in range(4)]
    assert found == [[0], [], [4], [6]]
    with pytest.raises(Py4JJavaError, match="Timeout"):
        stream.read(8, 9, run="b", looking=NOWHERE)
    assert stream.read(8, 9, run="b") == []


def test_a_query_goes_on_past_ends_of_transactions(stream: Stream, tmp_path: Path) -> None:
    """Spark tells its tasks which run they are of."""
    sender = Producer({"bootstrap.servers": stream.servers, "transactional.id": stream.topic})
    sender.init_transactions()
    seen: list[int] = []
    query = stream.follow(tmp_path / "checkpoint", seen)
    for row in (0, 0, 1, None, 1):
        sender.begin_transaction()
        stream.send([row], producer=sender)
        sender.commit_transaction()
        query.processAllAvailable()
    query.stop()
    assert seen == [0, 4, 6]
