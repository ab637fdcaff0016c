"""Plans that shards share in one query, on real Spark in a PE with one slot: shards that have
records in a batch, and inputs that have none, share its one task."""

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

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
from streamgraft_pe_runtime import local_files, query
from streamgraft_pe_runtime.alignment import obstacle, refusal
from streamgraft_pe_runtime.joint_checkpoints import describe
from streamgraft_pe_runtime.plan import Compiler, Plan, RealInputs
from streamgraft_pe_runtime.repeats import HEADER

pytestmark = pytest.mark.integration

SHARDS = 3
FIELDS = {"key": "string", "n": "long"}
INPUTS = ("sold", "back")
SMALL = "spark.sql.autoBroadcastJoinThreshold"

Function = Callable[[DataFrame, DataFrame], DataFrame]


@pytest.fixture(scope="module")
def session(cluster: Cluster) -> Iterator[SparkSession]:
    """A driver with the settings of a PE."""
    with driver(cluster, {}, slots=1) as found:
        local_files.install(found)
        yield found


class Application:
    """The application, as the runtime calls it."""

    def __init__(self, function: Function) -> None:
        self.functions: Mapping[str, Callable[..., DataFrame]] = {"made": function}

    def bind(self, parameters: Mapping[str, str]) -> None:
        """There are none."""


class Stage:
    """A stage with one operator over two inputs, all shards of which share a query."""

    def __init__(self, session: SparkSession, cluster: Cluster, folder: Path) -> None:
        self._session, self._servers = session, cluster.bootstrap_servers
        self._checkpoint = folder / "queries" / "1"
        self._job = f"joint-{uuid.uuid4().hex[:8]}"
        self._producer = idempotent(self._servers)
        self._reader = Consumer({"bootstrap.servers": self._servers, "group.id": "test"})
        admin = AdminClient({"bootstrap.servers": self._servers})
        topics = [f"{self._job}.{name}" for name in (*INPUTS, "made")]
        for made in admin.create_topics([NewTopic(topic, SHARDS, 1) for topic in topics]).values():
            made.result()
        self._reader.assign([TopicPartition(topics[-1], shard, 0) for shard in range(SHARDS)])
        self._query: query.ShardQuery | None = None
        self.read: list[tuple[str, int | None]] = []
        self.repeats = False
        """Whether records of the first input may come again."""

    def compile(self, function: Function, *, state: bool, counts: bool = False) -> Plan:
        """Return the plan of an operator. `counts`: its rows are updates."""
        mode = "update" if counts else "append"
        adl = self._adl(state, mode)
        metadata = self._metadata()
        compiler = Compiler(Application(function), adl, metadata)
        inputs = RealInputs(self._session, metadata, adl)
        return compiler.compile_joint(range(SHARDS), inputs)

    def start(self, plan: Plan, provider: str | None = None) -> None:
        """Start the query; `provider`: what keeps its state, if it has one."""
        state = provider or HDFS if plan.states else None
        describe(self._checkpoint, range(SHARDS), state)
        self._query = query.start(plan, self._checkpoint, 0.2, self._job)

    def send(self, name: str, *records: tuple[str, int | None]) -> None:
        """Write records to an input, those of key k<n> to partition n."""
        for key, n in records:
            value, origin = json.dumps({"key": key, "n": n}), f"run/0/in/{key[1:]}/{n}/1"
            headers: list[tuple[str, str | bytes | None]] = [(HEADER, origin)] * self.repeats
            topic, partition = f"{self._job}.{name}", int(key[1:])
            self._producer.produce(topic, value, key, partition, headers=headers)
        assert self._producer.flush(30) == 0

    def has_made(self, *expected: tuple[str, int | None]) -> None:
        """Read until these rows are there, and no others, each in the partition of its key."""
        assert self._query is not None
        deadline = time.monotonic() + 60
        while sorted(self.read, key=str) != sorted(expected, key=str):
            assert self._query.failure() is None
            assert time.monotonic() < deadline, self.read
            for message in self._reader.consume(1000, 0.2):
                assert message.error() is None
                row = json.loads(message.value() or b"")
                assert message.partition() == int(row["key"][1:])
                self.read.append((row["key"], row.get("n")))

    def failure(self) -> str | None:
        """Return why the query has ended by itself, if it has."""
        assert self._query is not None
        return self._query.failure()

    def stop(self) -> None:
        """Stop the query, if it runs."""
        self._reader.close()
        if self._query is not None:
            self._query.stop(30)

    def _adl(self, state: bool, mode: Any) -> Adl:
        made = Operator(
            name="made",
            kind="function",
            inputs=list(INPUTS),
            outputs=["made"],
            stateful=state,
            joint_state=state,
            output_mode=mode,
        )
        streams = [
            Stream(name=name, producer="test", schema=schema(**FIELDS))
            for name in (*INPUTS, "made")
        ]
        return Adl(
            name="joint",
            built_by="test",
            module="",
            application="",
            operators=[made],
            streams=streams,
        )

    def _metadata(self) -> PeMetadata:
        shared = {"partitions": SHARDS, "bootstrap_servers": self._servers, "operator": "made"}
        ports: list[dict[str, Any]] = [
            {**shared, "port": port, "stream": name, "topic": f"{self._job}.{name}"}
            for port, name in enumerate((*INPUTS, "made"))
        ]
        ports[0]["repeats"] = self.repeats
        target = {"key": ["key"], "keep_partition": True}
        return PeMetadata(
            namespace="default",
            job=self._job,
            pe_id=0,
            stage_name="work",
            region="work",
            channel=0,
            shard_count=SHARDS,
            operators=["made"],
            inputs=[InputPort.model_validate(port) for port in ports[:-1]],
            outputs=[OutputPort.model_validate({**ports[-1], **target})],
            checkpoint_path="unused",
            trigger_seconds=0.2,
            bundle_digest="",
        )


@pytest.fixture
def stage(session: SparkSession, cluster: Cluster, tmp_path: Path) -> Iterator[Stage]:
    """A stage that is stopped behind the test."""
    found = Stage(session, cluster, tmp_path)
    yield found
    found.stop()


def counted(rows: DataFrame) -> DataFrame:
    """Return how many rows each key has."""
    return rows.groupBy("key").agg(F.count("*").alias("n"))


@pytest.fixture(params=[HDFS, ROCKSDB], ids=["HDFS", "RocksDB"])
def provider(session: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    """What keeps the state, in the queries of the test."""
    session.conf.set(STATE_STORE_PROVIDER, request.param)
    yield request.param
    session.conf.unset(STATE_STORE_PROVIDER)


def test_shards_with_two_states_share_a_task(stage: Stage, provider: str) -> None:
    """The store that one of them has counted with is not what the next one looks for copies in."""
    plan = stage.compile(
        lambda sold, back: counted(sold.dropDuplicates(["n"])), state=True, counts=True
    )
    stage.send("sold", ("k0", 1), ("k0", 1), ("k1", 1), ("k2", 1))
    stage.start(plan, provider)
    stage.has_made(("k0", 1), ("k1", 1), ("k2", 1))
    stage.send("sold", ("k0", 1), ("k0", 2), ("k1", 2))
    stage.has_made(("k0", 1), ("k1", 1), ("k2", 1), ("k0", 2), ("k1", 2))


def test_branches_with_a_state_each_share_a_task(stage: Stage, provider: str) -> None:
    """Counts beside rows without their copies."""
    plan = stage.compile(
        lambda sold, back: counted(sold).unionAll(sold.dropDuplicates(["n"])),
        state=True,
        counts=True,
    )
    stage.send("sold", ("k0", 11), ("k0", 11), ("k1", 12))
    stage.start(plan, provider)
    stage.has_made(("k0", 2), ("k1", 1), ("k0", 11), ("k1", 12))
    stage.send("sold", ("k1", 12))
    stage.has_made(("k0", 2), ("k1", 1), ("k0", 11), ("k1", 12), ("k1", 2))


def test_branches_with_and_without_nulls(stage: Stage) -> None:
    """What is null in the second branch is so behind the union, though the first has none."""

    def made(sold: DataFrame, back: DataFrame) -> DataFrame:
        both = sold.select("key", F.lit(1).cast("long").alias("n")).unionAll(back)
        return both.groupBy("key").agg(F.count("n").alias("n"))

    stage.send("sold", ("k0", 5))
    stage.send("back", ("k0", 7), ("k0", None), ("k1", None))
    stage.start(stage.compile(made, state=True, counts=True))
    stage.has_made(("k0", 2), ("k1", 0))


def named(sold: DataFrame, back: DataFrame) -> DataFrame:
    """Return the rows, of which SQL reads what it has named twice."""
    text = (
        "with rows as (select key, n from {sold})"
        " select * from rows where n % 2 = 0 union all select * from rows where n % 2 = 1"
    )
    return sold.sparkSession.sql(text, sold=sold)


@pytest.mark.parametrize(
    "function",
    [lambda sold, back: sold.where("n % 2 = 0").unionAll(sold.where("n % 2 = 1")), named],
    ids=["union", "WITH"],
)
def test_branches_of_records_that_come_again(stage: Stage, function: Function) -> None:
    """Each reads them itself, in the one task: neither takes a record twice, nor leaves one out."""
    stage.repeats = True
    plan = stage.compile(function, state=False)
    assert obstacle(plan.frame) is None
    first = [("k0", n) for n in range(4)]
    stage.send("sold", *first, *first[1:], ("k1", 0))
    stage.start(plan)
    stage.has_made(*first, ("k1", 0))
    later = [("k0", 4), ("k0", 5)]
    stage.send("sold", *first[2:], *later, ("k1", 0), ("k1", 1))
    stage.has_made(*first, *later, ("k1", 0), ("k1", 1))


def in_pandas(rows: DataFrame) -> DataFrame:
    """Return the rows as they are."""
    return rows.mapInPandas(lambda frames: frames, rows.schema)


@pytest.mark.parametrize(
    ("function", "counts"),
    [
        (lambda sold, back: sold.dropDuplicates(["n"]).unionAll(back), False),
        (lambda sold, back: counted(sold).unionAll(counted(back)), True),
        (lambda sold, back: in_pandas(sold).unionAll(back), None),
    ],
    ids=["distinct", "counted", "in Pandas"],
)
def test_one_input_has_records(stage: Stage, function: Function, counts: bool | None) -> None:
    """Then the other one, and the shards of both are where they were."""
    stage.send("back", ("k0", 1), ("k1", 1))
    stage.start(stage.compile(function, state=counts is not None, counts=bool(counts)))
    stage.has_made(("k0", 1), ("k1", 1))
    stage.send("sold", ("k1", 1))
    stage.has_made(("k0", 1), ("k1", 1), ("k1", 1))
    stage.send("back", ("k1", 2))
    stage.has_made(("k0", 1), ("k1", 1), ("k1", 1), ("k1", 2))


@pytest.fixture
def few(session: SparkSession) -> Iterator[None]:
    """Only small tables are sent to where they are joined."""
    before = session.conf.get(SMALL, None)
    session.conf.set(SMALL, "1000b")
    yield
    if before is None:
        session.conf.unset(SMALL)
    else:
        session.conf.set(SMALL, before)


def table(session: SparkSession, folder: Path, rows: int) -> None:
    """Write a table with a row for each of so many keys."""
    made = session.range(rows).selectExpr("concat('k', id) as key", "id as m")
    made.coalesce(1).write.mode("overwrite").parquet(str(folder))


def test_a_query_that_may_mix_its_shards_fails_and_says_so(
    session: SparkSession, stage: Stage
) -> None:
    """As one of before an edit, whose batch was cut off: the next owner knows the failure by it."""
    table = session.range(9).selectExpr("concat('k', id) as key").hint("merge")
    plan = stage.compile(lambda sold, back: sold.hint("merge").join(table, "key"), state=False)
    stage.start(plan)
    stage.send("sold", ("k0", 1))
    deadline = time.monotonic() + 60
    while not (failure := stage.failure()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert refusal(failure).startswith("it has ")


@pytest.mark.usefixtures("few")
def test_table_that_has_grown(session: SparkSession, stage: Stage, tmp_path: Path) -> None:
    """It was small when the stage was given a joint query; the query goes on with it."""
    folder = tmp_path / "table"

    def made(sold: DataFrame, back: DataFrame) -> DataFrame:
        known = sold.sparkSession.read.parquet(str(folder))
        return sold.join(known, "key").selectExpr("key", "n + m as n")

    table(session, folder, 9)
    assert obstacle(stage.compile(made, state=False).frame) is None
    table(session, folder, 10_000)
    plan = stage.compile(made, state=False)
    assert "SortMergeJoin" in (obstacle(plan.frame) or "")
    stage.send("sold", ("k0", 1), ("k1", 1))
    stage.start(plan)
    stage.has_made(("k0", 1), ("k1", 2))


def test_table_joined_with_no_records(session: SparkSession, stage: Stage, tmp_path: Path) -> None:
    """Rows of a stream stay where they are, though the table beside them has more."""
    folder = tmp_path / "table"

    def made(sold: DataFrame, back: DataFrame) -> DataFrame:
        known = sold.sparkSession.read.parquet(str(folder))
        return sold.dropDuplicates(["n"]).join(known, "key").select("key", "n").unionAll(back)

    table(session, folder, 9)
    stage.send("back", ("k0", 1))
    stage.start(stage.compile(made, state=True))
    stage.has_made(("k0", 1))
    stage.send("sold", ("k1", 5))
    stage.has_made(("k0", 1), ("k1", 5))
    stage.send("back", ("k2", 3))
    stage.has_made(("k0", 1), ("k1", 5), ("k2", 3))
