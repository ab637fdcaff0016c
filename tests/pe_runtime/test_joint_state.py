"""State of shards goes from query to query, on real Spark: alone, together, apart, cut off."""

import json
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.pe_runtime.conftest import schema
from tests.pe_runtime.one_driver import driver
from tests.producers import idempotent

from streamgraft_common.adl import Adl, Operator, Stream
from streamgraft_common.pe_metadata import (
    HDFS,
    ROCKSDB,
    STATE_STORE_PROVIDER,
    InputPort,
    OutputPort,
    PeMetadata,
)
from streamgraft_local import Cluster
from streamgraft_pe_runtime import local_files, query, query_logs, shard_names
from streamgraft_pe_runtime.joint_checkpoints import JointCheckpoints, is_joint
from streamgraft_pe_runtime.plan import Compiler, RealInputs
from streamgraft_pe_runtime.protocol import failures

pytestmark = pytest.mark.integration

SHARDS = 4
KEYS = 12
ROUND = 60
"""Records between two changes."""
SECONDS = 0.2
KINDS = ("counts", "distinct", "counted")


class Application:
    """The application, as the runtime calls it."""

    functions: Mapping[str, Callable[[DataFrame], DataFrame]]

    def __init__(self) -> None:
        self.functions = {
            "counts": lambda rows: rows.groupBy("key").agg(F.count("*").alias("n")),
            "distinct": lambda rows: rows.dropDuplicates(["n"]),
            "counted": lambda rows: (
                rows.dropDuplicates(["n"]).groupBy("key").agg(F.count("*").alias("n"))
            ),
        }

    def bind(self, parameters: Mapping[str, str]) -> None:
        """There are none."""


ADL = Adl(
    name="states",
    built_by="test",
    module="",
    application="",
    operators=[
        Operator(
            name=name,
            kind="function",
            inputs=["numbers"],
            outputs=[name],
            stateful=True,
            joint_state=True,
            output_mode="append" if name == "distinct" else "update",
        )
        for name in KINDS
    ],
    streams=[
        Stream(name=name, producer="test", schema=schema(key="string", n="long"))
        for name in ("numbers", *KINDS)
    ],
)


@pytest.fixture(scope="module")
def session(cluster: Cluster) -> Iterator[SparkSession]:
    """A driver with the settings of a PE."""
    with driver(cluster, {}) as found:
        local_files.install(found)
        yield found


class Stage:
    """A stage with one operator, whose shards' queries all run in one driver."""

    def __init__(
        self, session: SparkSession, cluster: Cluster, folder: Path, kind: str, provider: str
    ) -> None:
        self._session = session
        self._servers = cluster.bootstrap_servers
        self.metadata = self._metadata(kind, f"states-{uuid.uuid4().hex[:8]}")
        self.checkpoints = JointCheckpoints(folder / kind, self._end_batch, provider)
        self._queries: dict[tuple[int, ...], query.ShardQuery] = {}
        self.folder = folder / kind
        self.sent: list[tuple[str, int]] = []
        self._producer = idempotent(self._servers)
        self._reader = Consumer({"bootstrap.servers": self._servers, "group.id": "test"})
        topics = [self.metadata.inputs[0].topic, self.metadata.outputs[0].topic]
        admin = AdminClient({"bootstrap.servers": self._servers})
        for made in admin.create_topics([NewTopic(topic, SHARDS, 1) for topic in topics]).values():
            made.result()
        (out,) = self.metadata.outputs
        self._reader.assign([TopicPartition(out.topic, number, 0) for number in range(SHARDS)])
        self.read: dict[str, list[int]] = {}

    def _metadata(self, kind: str, job: str) -> PeMetadata:
        shared = {"partitions": SHARDS, "bootstrap_servers": self._servers, "operator": kind}
        source = {"port": 0, "stream": "numbers", "topic": f"{job}.in"}
        target = {"port": 1, "stream": kind, "topic": f"{job}.out", "key": ["key"]}
        return PeMetadata(
            namespace="default",
            job=job,
            pe_id=0,
            stage_name="work",
            region="work",
            channel=0,
            shard_count=SHARDS,
            operators=[kind],
            inputs=[InputPort.model_validate(source | shared)],
            outputs=[OutputPort.model_validate(target | shared | {"keep_partition": True})],
            checkpoint_path="unused",
            trigger_seconds=SECONDS,
            bundle_digest="",
        )

    def start(self, *shards: int) -> None:
        """Take shards over and start the query of all of them."""
        checkpoint = self.checkpoints.take_over(shards, lambda topic, shard: 0)
        self._queries[shards] = self._start(checkpoint, shards)

    def start_alone(self) -> None:
        """Start a query for each shard, as before there were joint ones."""
        for shard in range(SHARDS):
            checkpoint = self.checkpoints.take_alone(shard)
            self._queries[shard,] = self._start(checkpoint, [shard])

    def stop(self) -> None:
        """Stop all queries between two batches."""
        stopped = [item.stop(30) for item in self._queries.values()]
        assert all(stopped)
        self._queries.clear()

    def cut_off(self) -> None:
        """Interrupt the only query amid a batch."""
        (shards,) = self._queries
        running = self._queries.pop(shards)
        checkpoint = running._checkpoint
        deadline = time.monotonic() + 60
        while True:
            self.send()
            while not query_logs.is_cut_off(checkpoint):
                assert time.monotonic() < deadline
            running._query.stop()
            if query_logs.is_cut_off(checkpoint):
                return
            running = self._start(checkpoint, shards)

    def send(self, *, keys: int = KEYS) -> None:
        """Write records to the partitions of the first keys, each tenth one twice."""
        (port,) = self.metadata.inputs
        for record in range(ROUND):
            key, n = record % keys, len(self.sent)
            for _ in range(2 if record % 10 == 9 else 1):
                self.sent.append((f"k{key}", n))
                value = json.dumps({"key": f"k{key}", "n": n})
                self._producer.produce(port.topic, value, f"k{key}", key % SHARDS)
        assert self._producer.flush(30) == 0

    def expected(self) -> dict[str, Counter[int]]:
        """Return the numbers that were written, by key."""
        found: dict[str, Counter[int]] = {}
        for key, n in self.sent:
            found.setdefault(key, Counter())[n] += 1
        return found

    def _start(self, checkpoint: Path, shards: Sequence[int]) -> query.ShardQuery:
        compiler = Compiler(Application(), ADL, self.metadata)
        inputs = RealInputs(self._session, self.metadata, ADL)
        compile_ = compiler.compile_joint if is_joint(checkpoint) else compiler.compile
        name = f"{self.metadata.job}-{'-'.join(map(str, shards))}"
        names = shard_names.held(self.folder / str(shard) for shard in shards)
        shard_names.hold(self._session, checkpoint, names)
        return query.start(compile_(shards, inputs), checkpoint, SECONDS, name)

    def _end_batch(self, checkpoint: Path, shards: Sequence[int]) -> None:
        running = self._start(checkpoint, shards)
        while query_logs.is_cut_off(checkpoint):
            assert running.failure() is None
            time.sleep(0.02)
        running.stop(30)

    def until(self, done: Callable[[], bool]) -> None:
        """Read what comes out until it is what it should be."""
        deadline = time.monotonic() + 60
        while not done():
            failures = [item.failure() for item in self._queries.values()]
            assert failures == [None] * len(failures)
            assert time.monotonic() < deadline, (self.read, self.expected())
            for message in self._reader.consume(1000, 0.2):
                assert message.error() is None
                row = json.loads(message.value() or b"")
                self.read.setdefault(row["key"], []).append(row["n"])


def totals(stage: Stage) -> dict[str, int]:
    """Return what was counted last."""
    return {key: values[-1] for key, values in stage.read.items()}


@pytest.fixture
def provider(session: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    """What keeps the state, in the queries of the test."""
    session.conf.set(STATE_STORE_PROVIDER, request.param)
    yield request.param
    session.conf.unset(STATE_STORE_PROVIDER)


@pytest.mark.parametrize(
    ("kind", "provider"),
    [
        ("counts", HDFS),
        ("counted", ROCKSDB),
        *(
            pytest.param(kind, provider, marks=pytest.mark.long)
            for kind, provider in (
                ("distinct", HDFS),
                ("counted", HDFS),
                ("counts", ROCKSDB),
                ("distinct", ROCKSDB),
            )
        ),
    ],
    indirect=["provider"],
)
def test_state_goes_along(
    session: SparkSession, cluster: Cluster, tmp_path: Path, kind: str, provider: str
) -> None:
    """From the layout of a query per shard, over every way in which shards part, and back."""
    stage = Stage(session, cluster, tmp_path, kind, provider)

    def exact() -> bool:
        if kind == "distinct":
            return {key: Counter(values) for key, values in stage.read.items()} == {
                key: Counter(set(numbers)) for key, numbers in stage.expected().items()
            }
        return totals(stage) == {
            key: len(n) if kind == "counted" else n.total() for key, n in stage.expected().items()
        }

    stage.start_alone()
    stage.send()
    stage.until(exact)
    stage.stop()
    stage.start(0, 1, 2, 3)
    stage.send()
    stage.until(exact)
    before = {file.name for file in (stage.folder / "3" / "state").glob("*/0/*")}
    stage.send(keys=2)  # shards 2 and 3 are idle
    stage.until(exact)
    assert {file.name for file in (stage.folder / "3" / "state").glob("*/0/*")} == before
    stage.cut_off()
    stage.start(0, 1)
    stage.start(2, 3)
    stage.send()
    stage.until(exact)
    stage.stop()
    stage.start(0, 3)
    stage.start(2)
    stage.start(1)
    stage.send()
    stage.until(exact)
    stage.stop()
    for shard in (1, 2):  # as a savepoint does, and then no channel takes them but this one
        stage.checkpoints.take_alone(shard)
    stage.start(0, 1, 2, 3)
    stage.send()
    stage.until(exact)
    stage.stop()
    stage.start_alone()
    stage.send()
    stage.until(exact)
    stage.stop()
    stage.start(0, 1, 2, 3)
    stage.send()
    stage.until(exact)
    stage.stop()
    if kind == "counts":  # nothing was written twice, and no count ever fell
        assert all(values == sorted(set(values)) for values in stage.read.values())


@pytest.mark.parametrize("provider", [HDFS], indirect=True)
def test_who_has_lost_a_shard_leaves_its_state(
    session: SparkSession, cluster: Cluster, tmp_path: Path, provider: str
) -> None:
    """One of those of its query, as to a rollback of the region while it was frozen."""
    stage = Stage(session, cluster, tmp_path, "counts", provider)
    stage.start(0, 1, 2, 3)
    stage.send()
    written = {key: n.total() for key, n in stage.expected().items()}
    stage.until(lambda: totals(stage) == written)
    shard = stage.folder / "1"
    shard_names.name(shard, shard_names.holder(shard), None)
    before = {file.name for file in (shard / "state").glob("*/0/*")}
    stage.send()
    (running,) = stage._queries.values()
    deadline = time.monotonic() + 60
    while (failure := running.failure()) is None:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert failures.is_fenced(failure)
    assert {file.name for file in (shard / "state").glob("*/0/*")} == before
