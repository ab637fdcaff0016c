"""Fencing several transactional ids: what is under way when one fails does not come later."""

import threading

import pytest

from streamgraft_operator.kafka import client
from streamgraft_operator.kafka.client import Brokers, Kafka, KafkaUnavailable


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
