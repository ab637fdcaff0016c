"""What a PE asks Kafka beside Spark: real brokers, of which some partitions don't answer."""

import asyncio
import threading
import uuid

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from prometheus_client.parser import text_string_to_metric_families
from tests.pe_runtime.conftest import published

from streamgraft_local import Cluster
from streamgraft_pe_runtime import brokers as module
from streamgraft_pe_runtime.brokers import Brokers
from streamgraft_pe_runtime.metrics import PeMetrics


class PlayedBrokers(Brokers):
    """Brokers that nobody connects to, of which some partitions fail."""

    def __init__(self, side_by_side: int) -> None:
        super().__init__("localhost:1", "group", {})
        self.asked: list[int] = []
        self.down: set[int] = set()
        self._together = threading.Barrier(side_by_side)

    def _bounds(self, key: tuple[str, int], seconds: float) -> tuple[int, int]:
        self.asked.append(key[1])
        self._together.wait(5)
        if key[1] in self.down:
            raise KafkaException("no leader")
        return 0, key[1]


def test_many_partitions_are_asked_side_by_side() -> None:
    """Whoever starts a query over many shards waits for all of them."""
    brokers = PlayedBrokers(side_by_side=8)
    brokers.down = {5}
    found = brokers.bounds(("t", number) for number in range(64))
    assert found.found == {("t", number): (0, number) for number in range(64) if number != 5}
    assert found.failed == {("t", 5): str(KafkaException("no leader"))}
    brokers.close()


def test_partitions_that_failed_are_asked_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest-waiting first."""
    monkeypatch.setattr(module, "_AT_A_TIME", 1)
    brokers = PlayedBrokers(side_by_side=1)
    for down, asked in (
        ({1}, [0, 1, 2, 3]),
        ({0, 1}, [0, 2, 3, 1]),
        ({1}, [2, 3, 0, 1]),
        (set[int](), [0, 2, 3, 1]),
        (set[int](), [0, 1, 2, 3]),
    ):
        brokers.down, brokers.asked = down, []
        found = brokers.bounds(("t", number) for number in range(4))
        assert {number for _, number in found.failed} == down
        assert brokers.asked == asked
    brokers.close()


@pytest.mark.integration
async def test_a_partition_that_fails_leaves_the_others_readable(cluster: Cluster) -> None:
    """Partition 7 does not exist; a broker that is away answers for none, and is asked again."""
    topic = f"bounds-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(30)
    brokers = Brokers(cluster.bootstrap_servers, topic, {})
    partitions = [(topic, 7), (topic, 0), (topic, 1)]
    async with asyncio.timeout(30):  # a topic that was just made has no leaders yet
        while len((bounds := await asyncio.to_thread(brokers.bounds, partitions)).found) < 2:
            await asyncio.sleep(0.2)
    assert bounds.found == {(topic, 0): (0, 0), (topic, 1): (0, 0)}
    assert bounds.asked_at.keys() == bounds.found.keys()
    assert bounds.failed.keys() == {(topic, 7)}
    await asyncio.to_thread(cluster.stop, "kafka")
    try:
        bounds = await asyncio.to_thread(brokers.bounds, partitions)
        assert (bounds.found, bounds.asked_at) == ({}, {})
        assert bounds.failed.keys() == set(partitions)
    finally:
        await asyncio.to_thread(cluster.start, "kafka")
    async with asyncio.timeout(60):
        while len((await asyncio.to_thread(brokers.bounds, partitions)).found) < 2:
            await asyncio.sleep(0.2)
    place = (f"{topic}@{cluster.bootstrap_servers}", 1)
    assert (await asyncio.to_thread(brokers.bounds, [place])).found == {place: (0, 0)}
    await published(brokers, {place: 3})
    assert await asyncio.to_thread(brokers.published, [(topic, 1)]) == {(topic, 1): 3}
    assert not await asyncio.to_thread(brokers.has_records, place, 0)
    brokers.close()


def test_positions_have_an_age_as_of_the_scrape(monkeypatch: pytest.MonkeyPatch) -> None:
    """It grows by itself while nobody reads them, and goes with its partition."""
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    metrics = PeMetrics(1)
    metrics.position_ages.read("t", 3, now - 1)
    assert ages(metrics) == {("t", "3"): 1.0}
    now += 30
    assert ages(metrics) == {("t", "3"): 31.0}
    metrics.drop_partition("t", 3)
    assert ages(metrics) == {}


def ages(metrics: PeMetrics) -> dict[tuple[str, str], float]:
    """Return the exported ages by topic and partition."""
    families = text_string_to_metric_families(metrics.exposition().decode())
    return {
        (sample.labels["topic"], sample.labels["partition"]): sample.value
        for family in families
        for sample in family.samples
        if sample.name == "streamgraft_pe_position_age_seconds"
    }
