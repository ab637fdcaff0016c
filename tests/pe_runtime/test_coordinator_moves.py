"""The broker that coordinates a shard's transactions dies: another one takes over."""

import uuid
from collections import Counter
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession
from tests.pe_runtime.chain import Chain
from tests.pe_runtime.one_driver import PARTITIONS
from tests.pe_runtime.two_brokers import LOG_PARTITIONS, TwoBrokers, partition_of, two_brokers

from streamgraft_common import names
from streamgraft_local import Cluster

pytestmark = [pytest.mark.integration, pytest.mark.long]

EACH = 300


def test_each_record_is_written_once(
    session: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    """Batches come one after the other while it happens; none fails for good."""
    with two_brokers(cluster, tmp_path / "brokers") as brokers:
        source = f"in-{uuid.uuid4().hex[:8]}"
        outputs = (f"{source}-a", f"{source}-b")
        admin = AdminClient({"bootstrap.servers": brokers.bootstrap_servers})
        topics = [NewTopic(name, PARTITIONS, 2) for name in (source, *outputs)]
        for made in admin.create_topics(topics).values():
            made.result(60)
        chain = Chain(
            session, cast(Any, brokers), tmp_path / "checkpoint", source, outputs
        )  # it asks its cluster for the brokers' addresses only
        try:
            chain.write(0, EACH)
            chain.start()
            assert chain.read(EACH) == [Counter(range(EACH))] * 2
            chain.stop()
            chain.identity = _coordinated_by_second(brokers)
            chain.checkpoint = tmp_path / "moved"
            chain.start()
            chain.write(EACH, 2 * EACH)
            chain.read(2 * EACH)
            coordinator = "__transaction_state", partition_of(_transactional_ids(chain.identity)[0])
            brokers.kill_second()
            chain.write(2 * EACH, 3 * EACH)
            brokers.until_moved(*coordinator)
            chain.write(3 * EACH, 5 * EACH)
            if chain.running and chain.running.failure():  # a PE starts it again, too
                chain.running.stop(0)
                chain.start()
            found = chain.read(5 * EACH)
            chain.stop()
        finally:
            if chain.running:
                chain.running.stop(0)
    # The first query had written the first part, too.
    expected = Counter(range(5 * EACH)) + Counter(range(EACH))
    assert found == [expected] * 2


def _transactional_ids(identity: str) -> list[str]:
    return [names.transactional_id("n", identity, "s", 0, target) for target in ("0", "1")]


def _coordinated_by_second(brokers: TwoBrokers) -> str:
    """Return an identity with which the first target's transactions are coordinated by the second
    broker; those of the other target may be, too: Kafka deals leaders out at random."""
    log = range(LOG_PARTITIONS)
    led = {item for item in log if brokers.leader("__transaction_state", item) == 2}
    identities = (f"moved-{number}" for number in range(10_000))
    return next(item for item in identities if partition_of(_transactional_ids(item)[0]) in led)
