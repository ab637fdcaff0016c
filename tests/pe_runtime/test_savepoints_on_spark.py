"""Real queries start from copies of checkpoints, after those they were made from are gone."""

import json
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.pe_runtime.one_driver import driver
from tests.pe_runtime.test_savepoints import REQUEST, storage
from tests.pe_runtime.test_state_handover import ROCKSDB, SCHEMA, Totals
from tests.producers import idempotent

from streamgraft_common import names
from streamgraft_local import Cluster
from streamgraft_pe_runtime.state_stores import StateStores

pytestmark = pytest.mark.integration


@pytest.fixture
def session(cluster: Cluster) -> Iterator[SparkSession]:
    """A driver whose state is in RocksDB."""
    with driver(cluster, ROCKSDB) as session:
        yield session


def topic_of(cluster: Cluster, job: str) -> str:
    """Make the topic that the region of a job reads, with two partitions."""
    topic = names.topic("ns", job, "raw", "work")
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result()
    return topic


def send(cluster: Cluster, topic: str, partition: int, *numbers: int) -> None:
    """Send numbers, all of one key."""
    producer = idempotent(cluster.bootstrap_servers)
    for n in numbers:
        producer.produce(topic, json.dumps({"key": "k", "n": n}), partition=partition)
    assert producer.flush(30) == 0


def totals(
    session: SparkSession, cluster: Cluster, topic: str, shard: int, checkpoint: Path
) -> list[int]:
    """Run the query of a shard on what is there; return the totals that it writes."""
    found: list[int] = []
    rows = (
        session.readStream.format("kafka")
        .option("kafka.bootstrap.servers", cluster.bootstrap_servers)
        .option("assign", json.dumps({topic: [shard]}))
        .option("startingOffsets", "earliest")
        .load()
        .select(F.from_json(F.col("value").cast("string"), SCHEMA).alias("row"))
        .select("row.*")
        .groupBy("key")
        .transformWithStateInPandas(
            Totals(), outputStructType=SCHEMA, outputMode="Update", timeMode="None"
        )
    )
    writer = rows.writeStream.outputMode("update").foreachBatch(
        lambda batch, _: found.extend(row["n"] for row in batch.collect())
    )
    writer = writer.option("checkpointLocation", str(checkpoint))
    query = writer.trigger(processingTime="100 milliseconds").start()
    query.processAllAvailable()
    query.stop()
    return found


def test_a_fork_needs_nothing_of_the_job_that_was_saved(
    cluster: Cluster, session: SparkSession, tmp_path: Path
) -> None:
    """Neither the files of its schemas nor its topics, also where no record has ever been."""
    old, new = (f"{kind}-{uuid.uuid4().hex[:8]}" for kind in ("job", "fork"))
    here, fork = storage(tmp_path, old), storage(tmp_path, new, REQUEST.savepoint)
    topic = topic_of(cluster, old)
    send(cluster, topic, 0, 1, 2)
    first = [totals(session, cluster, topic, n, here.checkpoint(n)) for n in range(2)]
    assert first == [[3], []]
    (state,) = StateStores(session).describe(here.checkpoint(0))
    assert (state.operator, state.key) == ("transformWithStateInPandasExec", [])
    here.save(REQUEST)
    shutil.rmtree(here.checkpoint(0).parent)
    topic = topic_of(cluster, new)
    for shard in range(2):
        fork.prepare(shard)
        send(cluster, topic, shard, 10)
    again = [totals(session, cluster, topic, n, fork.checkpoint(n)) for n in range(2)]
    assert again == [[13], [10]]
