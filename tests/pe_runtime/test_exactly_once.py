"""The sink that writes each batch exactly once, on real Spark and Kafka, in one driver."""

import json
import shutil
import signal
import time
import uuid
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.pe_runtime.chain import PER_BATCH, SECONDS, Chain, crashed_behind_the_commit, once

from streamgraft_local.processes import Process
from streamgraft_pe_runtime import exclusive_files, shard_names
from streamgraft_pe_runtime.checkpoint_files import LEDGERS, TAKEN_OVER, keep_as_former
from streamgraft_pe_runtime.protocol import failures
from streamgraft_pe_runtime.reports import gaps
from streamgraft_pe_runtime.shard_names import QUERIES

pytestmark = pytest.mark.integration

BUFFER = "spark.datasource.exactly-once-kafka.bufferBytes"


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


def test_offsets_without_records_are_counted(chain: Chain) -> None:
    """Each transaction upstream leaves a marker behind its one record."""
    chain.write(0, 5)
    run = chain.start()
    chain.read(5)
    first = run.reports(-1)
    settings = {"bootstrap.servers": chain.cluster.bootstrap_servers, "transactional.id": "small"}
    producer = Producer(settings)
    producer.init_transactions()
    for number in range(5, 25):
        producer.begin_transaction()
        producer.produce(chain.source, json.dumps({"n": number}), partition=0)
        producer.commit_transaction()
    chain.read(25)
    chain.stop()
    later = run.reports(first[-1]["batchId"])
    assert sum(map(gaps, first)) == 0
    assert sum(report["numInputRows"] for report in later) == 20
    # Spark may plan a batch between a record and its marker, and that one's marker has no row.
    assert 15 <= sum(map(gaps, later)) <= 20


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
    """As after a crash between the two commits, and so before that of the shared one."""
    crashed_behind_the_commit(chain, 100)
    for target in chain.targets()[1:]:
        chain.forget_last_batch(target)
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


@pytest.mark.parametrize("lost", [1, 2])
def test_a_checkpoint_that_was_put_back_writes_nothing(
    chain: Chain, tmp_path: Path, lost: int
) -> None:
    """Nor to a sink with a ledger of its own, which knows of few batches: the shared one has the
    first word. Else the newest checkpoint, put back as told, would write the same there again."""
    chain.shared, chain.conditions = frozenset({0}), {1: "{n} < 5 or {n} >= 20"}
    chain.start()
    for count in range(5, 25, 5):
        chain.write(count - 5, count)
        chain.read(count, 5)
    chain.stop()
    kept = shutil.copytree(chain.checkpoint, tmp_path / "kept")
    last = chain.last_batch()
    chain.forget(*(f"{log}/{last - n}" for log in ("offsets", "commits") for n in range(lost)))
    chain.write(20, 25)
    chain.start()
    assert "was put back" in failures.summary(chain.failure())
    chain.checkpoint = kept
    chain.start()
    assert chain.read(25, 10) == [Counter(range(25)), Counter([*range(5), *range(20, 25)])]


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


def producers(session: SparkSession, chain: Chain) -> int:
    """Return how many producers have one of a chain's ids, or ask for it."""
    threads: Any = session._jvm.java.lang.Thread.getAllStackTraces().keySet()  # type: ignore[union-attr]
    names = (thread.getName() for thread in threads)
    return sum("kafka-producer-network-thread" in name and chain.identity in name for name in names)


def test_run_that_comes_too_late_leaves_the_ledger_alone(
    chain: Chain, session: SparkSession, tmp_path: Path
) -> None:
    """It was frozen while it asked for the id, and its query was taken over: who did so comes
    again."""
    chain.write(0, 50)
    chain.start()
    chain.read(50)
    late = replace(chain, checkpoint=tmp_path / "late")
    broker = Process.load(chain.cluster.home.record("kafka"))
    assert broker
    before, deadline = producers(session, chain), time.monotonic() + 60
    broker.send(signal.SIGSTOP)
    try:
        late.start()
        while producers(session, chain) < 2 * before:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        exclusive_files.create(late.checkpoint / LEDGERS / TAKEN_OVER, "")
    finally:
        broker.send(signal.SIGCONT)
    assert failures.is_fenced(late.failure())
    chain.write(50, 60)
    assert failures.is_fenced(chain.failure())
    chain.start()
    assert chain.read(60) == once(60)


@pytest.mark.parametrize("joint", [False, True])
def test_run_whose_shards_were_taken_over_before_it_opens_its_sink_leaves_them_the_id(
    chain: Chain, session: SparkSession, tmp_path: Path, *, joint: bool
) -> None:
    """Whoever has them by now goes on, and does not come again."""
    chain.write(0, 50)
    chain.start()
    chain.read(50)
    place = f"{QUERIES}/late" if joint else "0"
    late = replace(chain, checkpoint=tmp_path / "stage" / place)
    names = [tmp_path / "stage" / shard / QUERIES / "1" for shard in ("0", "1")[: 1 + joint]]
    heirs = [name.with_name("2") for name in names]
    for name in (*names[:-1], *heirs[-1:]):  # one of them is gone
        exclusive_files.create(name, "{}")
    exclusive_files.create(late.checkpoint / "metadata", json.dumps({"id": str(uuid.uuid4())}))
    shard_names.hold(session, late.checkpoint, names)
    late.start()
    assert failures.is_fenced(late.failure())
    chain.write(50, 60)
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


@pytest.mark.parametrize("attempts", [(0, 1), (1, 0)])
def test_a_task_that_runs_again_writes_nothing(
    session: SparkSession, attempts: tuple[int, int]
) -> None:
    """Whether it failed itself, or its stage lost what a stage before had computed: what the first
    attempt has sent is in the batch's transaction."""
    jvm: Any = session._jvm
    contexts = getattr(getattr(jvm.org.apache.spark, "TaskContext$"), "MODULE$")
    of_stage, of_task = attempts
    empty = jvm.java.util.Properties()
    resources = contexts.empty().resources()
    context = jvm.org.apache.spark.TaskContextImpl(
        0, of_stage, 0, 1, of_task, 1, None, empty, None, None, 1, resources
    )
    schema = jvm.org.apache.spark.sql.types.StructType()
    exactly_once = jvm.org.apache.spark.sql.kafka010.exactlyonce
    factory = exactly_once.RecordWriterFactory("nobody", schema)
    contexts.setTaskContext(context)
    try:
        with pytest.raises(Py4JJavaError, match="a task of the batch ran twice"):
            factory.createWriter(0, 0, 0)
    finally:
        contexts.unset()


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
