"""Ledgers of queries that have no records for longer than brokers remember who writes."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.pe_runtime.chain import Chain, chain_at, once
from tests.pe_runtime.two_brokers import another_broker

from streamgraft_local import Cluster

pytestmark = pytest.mark.integration

RENEW = "spark.datasource.exactly-once-kafka.renewMillis"
EXPIRES_SECONDS = 5
FORGETFUL = {
    "transactional.id.expiration.ms": EXPIRES_SECONDS * 1000,
    "transaction.remove.expired.transaction.cleanup.interval.ms": 1000,
    "offsets.retention.minutes": 1,
    "offsets.retention.check.interval.ms": 1000,
}
IN_TIME, TOO_LATE = "2000", "7000"


class Forgetful(Cluster):
    """Brokers that forget within seconds what others keep for a week."""

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__()
        self._servers = bootstrap_servers

    @property
    def bootstrap_servers(self) -> str:
        """What Kafka clients connect to."""
        return self._servers


@pytest.fixture(scope="module")
def forgetful(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A broker that does so."""
    with another_broker(cluster, tmp_path_factory.mktemp("kafka"), FORGETFUL) as servers:
        yield Forgetful(servers)


@pytest.fixture(params=[IN_TIME, TOO_LATE])
def idle(
    session: SparkSession, forgetful: Cluster, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Chain]:
    """A chain that does not run yet, and renews its ledgers before their ids expire, or behind."""
    session.conf.set(RENEW, request.param)
    with chain_at(session, forgetful, tmp_path / "checkpoint") as found:
        yield found
    session.conf.unset(RENEW)


def test_transactional_ids_that_expired_between_two_batches(idle: Chain) -> None:
    _write_and_wait(idle, 3 * EXPIRES_SECONDS)
    idle.write(100, 120)
    assert idle.read(120) == once(120)


@pytest.mark.long
def test_a_batch_that_is_cut_off_when_its_ledger_would_have_expired(idle: Chain) -> None:
    _write_and_wait(idle, 75)
    idle.write(100, 120)
    assert idle.read(120) == once(120)
    _wait(75)
    idle.stop()
    idle.forget(f"commits/{idle.last_batch()}")
    idle.start()
    idle.write(120, 130)
    assert idle.read(130) == once(130)


def _write_and_wait(chain: Chain, seconds: float) -> None:
    chain.write(0, 100)
    chain.start()
    chain.read(100)
    _wait(seconds)


def _wait(seconds: float) -> None:
    time.sleep(seconds)  # brokers tell nobody what they forget
