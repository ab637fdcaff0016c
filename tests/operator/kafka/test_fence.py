"""Fencing several transactional ids: what is under way when one fails does not come later."""

import threading
from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from streamgraft_common.kube import KubeConfig
from streamgraft_operator.context import Context
from streamgraft_operator.graph import PlannedTopic
from streamgraft_operator.kafka import client
from streamgraft_operator.kafka.client import Brokers, Kafka, KafkaUnavailable
from streamgraft_operator.kafka.topics import Leftovers, TopicChanges
from streamgraft_operator.kit.leadership import FencedClient, NotLeading
from streamgraft_operator.settings import Settings


async def test_no_id_is_taken_over_after_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be the next owner's by then."""
    failed, taken = threading.Event(), []

    def take_over(brokers: Brokers, transactional_id: str) -> None:
        if transactional_id == "fails":
            failed.set()
            raise KafkaUnavailable(brokers.servers)
        failed.wait(10)
        threading.Event().wait(0.1)
        taken.append(transactional_id)

    monkeypatch.setattr(client, "_take_over", take_over)
    with pytest.raises(KafkaUnavailable):
        await Kafka().fence(Brokers("b:9092"), ["fails", "slow"])
    assert taken == ["slow"]


async def test_a_replica_without_the_lease_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was frozen between its decision and the call; the topics are another job's by now."""
    called: list[str] = []
    monkeypatch.setattr(client, "_take_over", lambda *_: called.append("fence"))
    monkeypatch.setattr(Kafka, "_delete", lambda *_: called.append("delete"))
    monkeypatch.setattr(Kafka, "_change", lambda *_: called.append("change"))
    leads = True
    kafka, brokers = Kafka(lambda: leads), Brokers("b:9092")
    writes: tuple[Callable[[], Awaitable[None]], ...] = (
        lambda: kafka.fence(brokers, ["t"]),
        lambda: kafka.delete(brokers, Leftovers(("t",), ())),
        lambda: kafka.change(
            brokers,
            TopicChanges((), (PlannedTopic("t", 1, "b:9092", external=False, awaited=False),), ()),
        ),
    )
    for write in writes:
        await write()
    assert called == ["fence", "delete", "change"]
    leads = False
    for write in writes:
        with pytest.raises(NotLeading):
            await write()
    assert len(called) == 3


async def test_the_operators_kafka_asks_for_the_lease() -> None:
    settings = Settings("b:9092", {}, "image")
    for leads, error in ((False, NotLeading), (True, KafkaUnavailable)):
        client = FencedClient(KubeConfig("http://127.0.0.1:1"), partial(bool, leads))
        kafka = Context.of(client, settings).kafka
        with pytest.raises(error):
            await kafka.delete(Brokers("127.0.0.1:1", (("no.such", ""),)), Leftovers(("t",), ()))
