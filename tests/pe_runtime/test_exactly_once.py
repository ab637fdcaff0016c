"""The sink that writes each batch exactly once, on real Spark and Kafka, in one driver.

A crash between the commit in Kafka and Spark's own leaves a batch in the checkpoint that is begun
and not committed. That is made here by hand; test_kills.py does it with kill -9.
"""

import json
import signal
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.pe_runtime.one_driver import PARTITIONS, make_topic, write

from streamgraft_common import names
from streamgraft_local import Cluster
from streamgraft_local.processes import Process
from streamgraft_pe_runtime import exclusive_files, query
from streamgraft_pe_runtime.checkpoint_files import LEDGERS, TAKEN_OVER, keep_as_former
from streamgraft_pe_runtime.joint_checkpoints import QUERIES
from streamgraft_pe_runtime.plan import IMPATIENT, READ_COMMITTED, Plan
from streamgraft_pe_runtime.protocol import failures
from streamgraft_pe_runtime.query import ShardQuery
from streamgraft_pe_runtime.targets import KafkaTarget

pytestmark = pytest.mark.integration

SECONDS = 60
PER_BATCH = 30
TARGETS = 2
BUFFER = "spark.datasource.exactly-once-kafka.bufferBytes"


@dataclass
class Chain:
    """A query from a topic into two topics by two targets, each record into both."""

    session: SparkSession
    cluster: Cluster
    checkpoint: Path
    source: str
    outputs: tuple[str, ...]
    identity: str = field(default_factory=lambda: f"shard-{uuid.uuid4().hex[:8]}")
    options: dict[str, str] = field(default_factory=dict)
    """Of both producers."""
    at_least_once: bool = False
    change: Callable[[DataFrame], DataFrame] = lambda frame: frame
    running: ShardQuery | None = None

    def targets(self) -> list[KafkaTarget]:
        """Return the targets; the second has a producer and a ledger of its own."""
        servers = self.cluster.bootstrap_servers
        found = [
            KafkaTarget.at(
                servers,
                False,
                topic,
                name=f"sink-{number}",
                options=self.options,
                transactional_id=names.transactional_id("n", self.identity, "s", 0, str(number)),
            )
            for number, topic in enumerate(self.outputs)
        ]
        return [item.at_least_once() for item in found] if self.at_least_once else found

    def start(self) -> ShardQuery:
        """Start the query on its checkpoint."""
        options = {
            "kafka.bootstrap.servers": self.cluster.bootstrap_servers,
            "subscribe": self.source,
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": str(PER_BATCH),
            **READ_COMMITTED,
            **IMPATIENT,
        }
        rows = self.change(self.session.readStream.format("kafka").options(**options).load())
        record = [
            f"named_struct('target', {number}, 'topic', '{topic}', 'value', value)"
            for number, topic in enumerate(self.outputs)
        ]
        frame = rows.select(F.expr(f"explode(array({', '.join(record)})) as record"))
        plan = Plan(frame.select("record.*"), self.targets(), "update")
        self.running = query.start(plan, self.checkpoint, 0.1, f"chain-{uuid.uuid4()}")
        return self.running

    def stop(self) -> None:
        """Stop at a batch boundary."""
        assert self.running
        assert self.running.stop(SECONDS)

    def write(self, first: int, last: int) -> None:
        """Write numbered records."""
        write(self.cluster, self.source, range(first, last))

    def read(self, count: int) -> list[Counter[int]]:
        """Wait for records up to a number in both outputs; return how often each is there."""
        found = [Counter[int](), Counter[int]()]
        consumers = [
            Consumer({"bootstrap.servers": self.cluster.bootstrap_servers, "group.id": "test"})
            for _ in self.outputs
        ]
        for consumer, topic in zip(consumers, self.outputs, strict=True):
            consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
        deadline = time.monotonic() + SECONDS
        while any(len(counter) < count for counter in found):
            failure = self.running.failure() if self.running else None
            assert failure is None, failure
            assert time.monotonic() < deadline, list(map(len, found))
            for consumer, counter in zip(consumers, found, strict=True):
                for message in consumer.consume(1000, 0.2):
                    counter[json.loads(message.value() or b"")["n"]] += 1
        for consumer, counter in zip(consumers, found, strict=True):
            for message in consumer.consume(1000, 1.0):
                counter[json.loads(message.value() or b"")["n"]] += 1
            consumer.close()
        return found

    def failure(self) -> str:
        """Wait until the query fails, and return what is shown of that."""
        assert self.running
        deadline = time.monotonic() + SECONDS
        while not (failure := self.running.failure()):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        self.running.stop(0)
        return failure

    def last_batch(self) -> int:
        """Return the newest batch of the checkpoint."""
        return max(int(file.name) for file in (self.checkpoint / "offsets").glob("[0-9]*"))

    def forget(self, *entries: str) -> None:
        """Remove entries of the checkpoint's logs."""
        for entry in entries:
            (self.checkpoint / entry).unlink()

    def lose_ledgers(self) -> None:
        """Delete the consumer groups, as brokers do with those that nobody uses."""
        groups = [names.ledger_group(item.transactional_id or "") for item in self.targets()]
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap_servers})
        for deleted in admin.delete_consumer_groups(groups).values():
            deleted.result()

    def forget_last_batch(self, target: KafkaTarget) -> None:
        """Have a ledger say that the last batch is not written."""
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap_servers})
        group = names.ledger_group(target.transactional_id or "")
        asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
        (noted,) = asked[group].result().topic_partitions
        noted.offset -= 1
        change = ConsumerGroupTopicPartitions(group, [noted])
        admin.alter_consumer_group_offsets([change])[group].result()


@pytest.fixture
def chain(session: SparkSession, cluster: Cluster, tmp_path: Path) -> Iterator[Chain]:
    """A chain that does not run yet."""
    source = make_topic(cluster)
    outputs = (f"{source}-a", f"{source}-b")
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for made in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in outputs]).values():
        made.result()
    found = Chain(session, cluster, tmp_path / "checkpoint", source, outputs)
    yield found
    if found.running:
        found.running.stop(0)


def once(count: int) -> list[Counter[int]]:
    """Return what is to be there of so many records."""
    return [Counter(range(count))] * TARGETS


def crashed_behind_the_commit(chain: Chain, count: int) -> None:
    """Run until all is written, and leave the last batch as if Spark had not committed it."""
    chain.write(0, count)
    chain.start()
    chain.read(count)
    chain.stop()
    chain.forget(f"commits/{chain.last_batch()}")


@pytest.mark.parametrize("buffer_bytes", [0, 1 << 24])
def test_batch_that_runs_again_is_skipped(
    chain: Chain, session: SparkSession, buffer_bytes: int
) -> None:
    """Several tasks, topics and targets; whether records are sent at the end or meanwhile."""
    session.conf.set(BUFFER, buffer_bytes)
    try:
        crashed_behind_the_commit(chain, 100)
        chain.start()
    finally:
        session.conf.unset(BUFFER)
    chain.write(100, 150)
    assert chain.read(150) == once(150)


def test_at_least_once_repeats_the_batch(chain: Chain) -> None:
    """So the tests here can fail."""
    chain.at_least_once = True
    crashed_behind_the_commit(chain, 100)
    chain.start()
    chain.write(100, 150)
    for counter in chain.read(150):
        assert set(counter) == set(range(150))
        assert counter.total() > 150


def test_batch_that_one_target_lacks_goes_to_that_one(chain: Chain) -> None:
    """As after a crash between the two commits."""
    crashed_behind_the_commit(chain, 100)
    chain.forget_last_batch(chain.targets()[1])
    chain.start()
    chain.write(100, 120)
    first, second = chain.read(120)
    assert first == Counter(range(120))
    assert second.total() > 120


def test_checkpoint_that_was_put_back_is_refused(chain: Chain) -> None:
    """Its batches are written, under numbers that would come again."""
    chain.write(0, 100)
    chain.start()
    chain.read(100)
    chain.stop()
    last = chain.last_batch()
    chain.forget(*(f"{log}/{last - n}" for log in ("offsets", "commits") for n in (0, 1)))
    chain.start()
    assert "was put back" in failures.summary(chain.failure())


def test_batch_with_other_records_is_refused(chain: Chain) -> None:
    """As if the loss of power had taken the plan of the last batch, and it was planned anew."""
    crashed_behind_the_commit(chain, 100)
    chain.forget(f"offsets/{chain.last_batch()}")
    chain.write(100, 110)
    chain.start()
    assert "with other records" in failures.summary(chain.failure())


def test_lost_ledger(chain: Chain) -> None:
    """Between two batches it does no harm; within one it can't be known what is written."""
    chain.write(0, 100)
    chain.start()
    chain.read(100)
    chain.stop()
    chain.lose_ledgers()
    chain.start()
    chain.write(100, 120)
    assert chain.read(120) == once(120)
    chain.stop()
    chain.forget(f"commits/{chain.last_batch()}")
    chain.lose_ledgers()
    chain.start()
    reason = failures.summary(chain.failure())
    assert "is gone" in reason
    marker = Path(reason.rpartition("delete ")[2])
    for file in marker.parent.iterdir():
        file.unlink()
    chain.start()
    chain.write(120, 130)
    (first, _) = chain.read(130)
    assert first.total() > 130


def test_another_query_under_the_same_id(chain: Chain, tmp_path: Path) -> None:
    """Who writes is fenced, and may not go on under an id that is another's."""
    chain.write(0, 50)
    chain.start()
    chain.read(50)
    other = replace(chain, checkpoint=tmp_path / "other").start()
    chain.write(50, 60)
    failure = chain.failure()
    assert failures.is_fenced(failure)
    chain.start()
    assert "another query has written" in failures.summary(chain.failure())
    other.stop(0)


def test_run_that_comes_too_late_leaves_the_ledger_alone(chain: Chain, tmp_path: Path) -> None:
    """It was frozen before it had the id, and its query was taken over: who did so comes again."""
    chain.write(0, 50)
    chain.start()
    chain.read(50)
    late = replace(chain, checkpoint=tmp_path / "late")
    exclusive_files.create(late.checkpoint / LEDGERS / TAKEN_OVER, "")
    late.start()
    assert failures.is_fenced(late.failure())
    chain.write(50, 60)
    assert failures.is_fenced(chain.failure())
    chain.start()
    assert chain.read(60) == once(60)


def test_ledger_of_before_counts_while_it_is_there(chain: Chain, tmp_path: Path) -> None:
    """A checkpoint was another owner's for a while, which may have written under the same id."""
    crashed_behind_the_commit(chain, 100)
    keep_as_former(chain.checkpoint)
    chain.start()
    chain.write(100, 150)
    assert chain.read(150) == once(150)
    chain.stop()
    between = replace(chain, checkpoint=tmp_path / "between")
    between.start()
    before = between.read(150)
    while min(item.total() for item in before) < 300:
        before = between.read(150)
    between.stop()
    keep_as_former(chain.checkpoint)
    chain.start()
    chain.write(150, 160)
    after = chain.read(160)
    for old, new in zip(before, after, strict=True):
        assert new - old == Counter(range(150, 160))


def test_run_that_comes_too_late_finds_its_shards_given_back(chain: Chain) -> None:
    """Others had them meanwhile, and someone runs them by now in the very same checkpoint."""
    chain.write(0, 50)
    broker = Process.load(chain.cluster.home.record("kafka"))
    assert broker
    broker.send(signal.SIGSTOP)
    try:
        chain.start()
        exclusive_files.create(chain.checkpoint / QUERIES / "0", "{}")
    finally:
        broker.send(signal.SIGCONT)
    assert failures.is_fenced(chain.failure())
    assert not (chain.checkpoint / LEDGERS).exists()


def _slowly(partition):  # type: ignore[no-untyped-def] # PySpark knows few annotations of UDFs
    time.sleep(0.5 if partition == 1 else 0)
    return True


def test_transaction_that_is_open_for_too_long(chain: Chain, session: SparkSession) -> None:
    """The brokers abort it, as they would each time that the batch comes again."""

    chain.options = {"kafka.transaction.timeout.ms": "1000"}
    # One of the tasks takes long, the others have begun to write.
    chain.change = lambda frame: frame.where(F.udf(_slowly, "boolean")("partition"))
    session.conf.set(BUFFER, 0)
    try:
        chain.write(0, PER_BATCH)
        chain.start()
    finally:
        session.conf.unset(BUFFER)
    assert "raise kafka.transaction.timeout.ms" in failures.summary(chain.failure())


def test_record_that_its_topic_does_not_take(chain: Chain) -> None:
    """The broker refuses it each time that the batch comes again; nothing of that is written."""
    small = ConfigEntry("max.message.bytes", "20000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, chain.outputs[1], incremental_configs=[small])
    admin = AdminClient({"bootstrap.servers": chain.cluster.bootstrap_servers})
    for altered in admin.incremental_alter_configs([resource]).values():
        altered.result()
    value = F.when(F.col("partition") == 0, F.expr("cast(repeat('x', 50000) as binary)"))
    chain.change = lambda frame: frame.withColumn("value", value.otherwise(F.col("value")))
    chain.write(0, PER_BATCH)
    chain.start()
    said = failures.explained(chain.failure())
    assert said.reason == "RecordTooLarge"
    assert "raise max.message.bytes" in said.message


def test_batch_without_rows_is_no_transaction(chain: Chain) -> None:
    chain.change = lambda frame: frame.where("cast(value as string) not like '{%'")
    chain.write(0, 50)
    running = chain.start()
    deadline = time.monotonic() + SECONDS
    while sum(report["numInputRows"] for report in running.reports(-1)) < 50:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    chain.stop()
    consumer = Consumer({"bootstrap.servers": chain.cluster.bootstrap_servers, "group.id": "test"})
    ends = [consumer.get_watermark_offsets(TopicPartition(chain.outputs[0], 0))]
    consumer.close()
    assert ends == [(0, 0)]
