"""Records that retention deleted are counted and reported, not forgotten with the lag."""

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from streamgraft_pe_runtime.losses import Gap, Losses

KEY = ("t", 0)


def test_each_record_is_lost_once() -> None:
    """The log's start moves on while the position stands still; then records are read again."""
    losses = Losses()
    counted = [
        losses.count(Gap(KEY, *each)) for each in ((10, 5), (10, 30), (10, 30), (10, 45), (50, 45))
    ]
    assert counted == [0, 20, 0, 15, 0]
    assert losses.count(Gap(KEY, 60, 70)) == 10
    unreported = losses.unreported()
    assert (unreported, losses.unreported()) == ({"t": 45}, {})
    losses.put_back(unreported)
    losses.count(Gap(("t", 1), 0, 5))
    assert losses.unreported() == {"t": 50}


@pytest.mark.integration
@pytest.mark.long
async def test_records_that_retention_deleted_are_counted_and_reported(
    stage: Any, load: Callable[[int], Any], output: Any
) -> None:
    """Thirty of forty records go while no PE runs; the next one's query does not go on silently."""
    pe = await stage.start(0, [0, 1])
    await pe.running(0, 1)
    source = load(100)
    output.until(lambda values: sum(map(len, values.values())) > 100)
    sent = source.stop()
    output.until(lambda values: sum(map(len, values.values())) >= sum(sent.values()))
    assert await pe.terminate() == 0

    producer = Producer({"bootstrap.servers": stage.cluster.bootstrap_servers})
    ends: list[int] = []
    for number in range(40):
        producer.produce(
            stage.input,
            f'{{"key": "a", "n": {number}}}',
            "a",
            partition=0,
            on_delivery=lambda error, message: ends.append((message.offset() or 0) + 1),
        )
    producer.flush(30)
    admin = AdminClient({"bootstrap.servers": stage.cluster.bootstrap_servers})
    (deleted,) = admin.delete_records([TopicPartition(stage.input, 0, max(ends) - 10)]).values()
    deleted.result(30)

    again = await stage.start(1, [0, 1])
    status = await again.until(lambda report: bool(report.lost and report.lost.topics))
    assert status.lost.topics == {stage.input: 30}
    assert status.lost.last_at
    metrics = (await again.get("/metrics"))[1]
    labels = f'partition="0",topic="{stage.input}"'
    assert f"streamgraft_pe_lost_records_total{{{labels}}} 30.0" in metrics
    assert f"streamgraft_pe_lag_records{{{labels}}} 10.0" in metrics, "what is gone does not wait"
    failed = await again.until(lambda status: status.shards["0"].state == "Failed")
    assert "failOnDataLoss" in failed.shards["0"].message
