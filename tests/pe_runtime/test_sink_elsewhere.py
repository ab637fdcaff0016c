"""The exactly-once sink as others may use it: in a query that nothing else of ours has made."""

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession
from tests.pe_runtime.one_driver import make_topic, read_all, write

from streamgraft_local import Cluster

pytestmark = pytest.mark.integration


def run(session: SparkSession, cluster: Cluster, topic: str, checkpoint: Path) -> None:
    """Copy what a topic has, as docs/use/exactly-once.md shows it."""
    servers = cluster.bootstrap_servers
    source = {"kafka.bootstrap.servers": servers, "subscribe": topic}
    frame = session.readStream.format("kafka").options(**source, startingOffsets="earliest").load()
    query = (
        frame.select("key", "value")
        .writeStream.format("exactly-once-kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", f"{topic}-out")
        .option("transactionalId", f"{topic}-query")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    try:
        assert query.awaitTermination(60)
    finally:
        jvm: Any = session._jvm
        jvm.org.apache.spark.sql.kafka010.exactlyonce.Owners.close(str(checkpoint), None)


def test_a_batch_that_comes_again_is_written_once(
    session: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    """Spark forgets that it was: as if the driver had died before it noted that."""
    topic, checkpoint = make_topic(cluster), tmp_path / "checkpoint"
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic(f"{topic}-out", 1, 1)])[f"{topic}-out"].result()
    write(cluster, topic, range(20))
    run(session, cluster, topic, checkpoint)
    for name in ("0", ".0.crc"):
        (checkpoint / "commits" / name).unlink(missing_ok=True)
    write(cluster, topic, range(20, 30))
    run(session, cluster, topic, checkpoint)
    found = sorted(message.value() for message in read_all(cluster, f"{topic}-out", 1))
    sent = sorted(message.value() for message in read_all(cluster, topic, 3))
    assert len(sent) == 30
    assert found == sent
