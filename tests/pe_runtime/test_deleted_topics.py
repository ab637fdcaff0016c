"""Topics were deleted, of a ledger or a source: what shards say, on real Spark and Kafka."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.pe_runtime.chain import Chain, once
from tests.producers import idempotent

from streamgraft_common.resources import RuntimeStatus
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
    """A chain that does not run yet."""
    places = chain.session, chain.cluster, chain.checkpoint, chain.source, chain.outputs
    found = ChainWithLedger(*places)
    yield found
    if found.running:
        found.running.stop(0)


@pytest.mark.parametrize("amid", [False, True], ids=["between two batches", "amid a batch"])
def test_a_ledger_whose_topic_was_deleted(with_ledger: ChainWithLedger, amid: bool) -> None:
    """Nothing is written without it. Once it is there again nobody knows what a batch that was
    begun has written; between two batches there is nothing to know."""
    chain = with_ledger
    admin = AdminClient({"bootstrap.servers": chain.cluster.bootstrap_servers})
    admin.create_topics([NewTopic(chain.ledger, 1, 1)])[chain.ledger].result()
    chain.write(0, 20)
    chain.start()
    chain.read(20)
    chain.stop()
    admin.delete_topics([chain.ledger])[chain.ledger].result()
    if amid:
        chain.options = {"kafka.max.block.ms": "3000"}
        chain.start()
        chain.options = {}
        chain.write(20, 30)
        said = failures.explained(chain.failure())
        assert said.reason == "LedgerUnavailable"
        assert "its topic was deleted" in said.message
        chain.running = None
        assert chain.read(20) == once(20)
    admin.create_topics([NewTopic(chain.ledger, 1, 1)])[chain.ledger].result()
    chain.start()
    if amid:
        assert failures.explained(chain.failure()).reason == "LedgerLost"
        chain.running = None
        assert chain.read(20) == once(20)
    else:
        chain.write(20, 30)
        assert chain.read(30) == once(30)


def _write(stage: Any, numbers: range) -> None:
    producer = idempotent(stage.cluster.bootstrap_servers)
    for n in numbers:
        producer.produce(stage.input, json.dumps({"key": "k0", "n": n}), "k0", partition=0)
    assert producer.flush(60) == 0


def _is_refused(status: RuntimeStatus) -> bool:
    shard = status.shards.get("0")
    return shard is not None and shard.reason == "TopicReplaced"


@pytest.mark.parametrize(
    ("stage", "runs", "external"),
    [
        pytest.param("plain", False, True, id="between runs"),
        pytest.param("plain", True, True, id="while it runs", marks=pytest.mark.long),
        pytest.param(
            "real time", False, True, id="between runs, real time", marks=pytest.mark.long
        ),
        pytest.param("real time", True, True, id="while it runs, real time"),
        pytest.param("plain", False, False, id="a stream, between runs"),
        pytest.param("plain", True, False, id="a stream, while it runs", marks=pytest.mark.long),
    ],
    indirect=["stage"],
)
async def test_a_topic_that_was_made_anew_with_more_records(
    stage: Any, output: Any, *, runs: bool, external: bool
) -> None:
    """The first of them would be skipped, and nothing would look wrong."""
    stage.external = external
    pe = await stage.start(0, [0, 1])
    await pe.running(0, 1)
    _write(stage, range(20))
    output.until(lambda values: values == {"k0": [*range(20)]}, 60)
    if not runs:
        assert await pe.terminate() == 0
    admin = AdminClient({"bootstrap.servers": stage.cluster.bootstrap_servers})
    admin.delete_topics([stage.input])[stage.input].result()
    admin.create_topics([NewTopic(stage.input, 2, 1)])[stage.input].result()
    _write(stage, range(100, 160))
    if not runs:
        pe = await stage.start(1, [0, 1])
    failed = await pe.until(_is_refused, 240)
    assert f"{stage.input} is another topic" in failed.shards["0"].message
    assert ("roll back" in failed.shards["0"].message) != external
    if not runs:
        output.read(5)
        assert output.values == {"k0": [*range(20)]}
