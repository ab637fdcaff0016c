"""The topic of a ledger was deleted: what its shard says, on real Spark and Kafka."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.pe_runtime.chain import Chain

from streamgraft_pe_runtime.protocol import failures
from streamgraft_pe_runtime.targets import KafkaTarget

pytestmark = pytest.mark.integration


class ChainWithLedger(Chain):
    """A chain whose ledgers are in a topic of their own."""

    @property
    def ledger(self) -> str:
        """The topic."""
        return f"{self.source}-ledger"

    def _target(self, name: str, topic: str) -> KafkaTarget:
        return replace(super()._target(name, topic), ledger_topic=self.ledger)


@pytest.fixture
def with_ledger(chain: Chain) -> Iterator[ChainWithLedger]:
    """A chain that does not run yet, and does not wait for long."""
    places = chain.session, chain.cluster, chain.checkpoint, chain.source, chain.outputs
    found = ChainWithLedger(*places, options={"kafka.max.block.ms": "3000"})
    yield found
    if found.running:
        found.running.stop(0)


def test_a_ledger_whose_topic_was_deleted(with_ledger: ChainWithLedger) -> None:
    chain = with_ledger
    admin = AdminClient({"bootstrap.servers": chain.cluster.bootstrap_servers})
    admin.create_topics([NewTopic(chain.ledger, 1, 1)])[chain.ledger].result()
    chain.write(0, 20)
    chain.start()
    chain.read(20)
    chain.stop()
    admin.delete_topics([chain.ledger])[chain.ledger].result()
    chain.start()
    chain.write(20, 30)
    said = failures.explained(chain.failure())
    assert said.reason == "LedgerUnavailable"
    assert "its topic was deleted" in said.message
