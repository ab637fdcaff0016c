"""kill -9 under a backlog, again and again: what a stage writes is there once.

The same batches go, in the same kills, to a sink that asks for at least once: that finds repeats.
"""

import asyncio
import json
import signal
import time
from collections import Counter
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.pe_runtime.conftest import KEYS, SHARDS, Pe, Stage
from tests.producers import idempotent

from streamgraft_common.pe_metadata import OutputPort, PeMetadata

pytestmark = pytest.mark.integration

RECORDS = 30_000
PER_BATCH = "1000"
SECONDS = 240
BUFFER = "spark.datasource.exactly-once-kafka.bufferBytes"


def loose(stage: Stage) -> str:
    """Return the topic of the sink that asks for at least once."""
    return f"{stage.namespace}.numbers.loose"


def metadata(stage: Stage) -> PeMetadata:
    """Return the stage's metadata with one more sink, and batches that take a while."""
    found = stage.metadata()
    (inner,) = found.outputs
    sink: dict[str, Any] = {"port": 2, "external": True, "operator": "loose", "topic": loose(stage)}
    ports = [inner, OutputPort.model_validate({**inner.model_dump(), **sink})]
    conf = {"spark.streamgraft.maxOffsetsPerTrigger": PER_BATCH}
    operators = [*found.operators, "loose"]
    return found.model_copy(update={"outputs": ports, "operators": operators, "spark_conf": conf})


def backlog(stage: Stage) -> None:
    """Make the sink's topic, and write numbered records, by key."""
    servers = {"bootstrap.servers": stage.cluster.bootstrap_servers}
    admin = AdminClient({**servers})
    admin.create_topics([NewTopic(loose(stage), SHARDS, 1)])[loose(stage)].result()
    producer = idempotent(
        stage.cluster.bootstrap_servers, {"queue.buffering.max.messages": RECORDS}
    )
    for record in range(RECORDS):
        number, key = divmod(record, KEYS)
        value = json.dumps({"key": f"k{key}", "n": number})
        producer.produce(stage.input, value, f"k{key}", partition=key % SHARDS)
    assert producer.flush(30) == 0


class Ends:
    """How far a topic has got, open transactions included."""

    def __init__(self, stage: Stage, topic: str) -> None:
        self._topic = topic
        servers = {"bootstrap.servers": stage.cluster.bootstrap_servers, "group.id": "test"}
        self._consumer = Consumer({**servers, "isolation.level": "read_uncommitted"})

    def __call__(self) -> int:
        """Return the sum over all partitions."""
        partitions = [TopicPartition(self._topic, number) for number in range(SHARDS)]
        return sum(self._consumer.get_watermark_offsets(item, 10)[1] for item in partitions)

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()


async def killed_while_writing(pe: Pe, ends: Ends) -> None:
    """Kill a PE as soon as it has written something more to a topic."""
    before = await asyncio.to_thread(ends)
    deadline = time.monotonic() + SECONDS
    while await asyncio.to_thread(ends) == before:
        assert pe.process.poll() is None, pe.log.read_text()[-4000:]
        assert time.monotonic() < deadline, pe.log.read_text()[-4000:]
    pe.signal(signal.SIGKILL)
    await asyncio.to_thread(pe.process.wait)


def read(stage: Stage, topic: str, done: Any) -> dict[str, list[int]]:
    """Read a topic until what was read is all; return the numbers of each key in their order."""
    servers = {"bootstrap.servers": stage.cluster.bootstrap_servers, "group.id": "test"}
    consumer = Consumer({**servers, "isolation.level": "read_committed"})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(SHARDS)])
    found: dict[str, list[int]] = {f"k{key}": [] for key in range(KEYS)}
    deadline = time.monotonic() + SECONDS
    more = True
    while more or not done(found):
        assert time.monotonic() < deadline, {key: values[-3:] for key, values in found.items()}
        messages = consumer.consume(10_000, 1.0)
        more = bool(messages)
        for message in messages:
            row = json.loads(message.value() or b"")
            found[row["key"]].append(row["n"])
    consumer.close()
    return found


@pytest.mark.long
@pytest.mark.parametrize(
    ("stage", "streamed"),
    [("plain", True), ("counted", False)],
    indirect=["stage"],
)
async def test_killed_under_a_backlog(stage: Stage, streamed: bool) -> None:
    """Killed amid an open transaction (`streamed`), or at its end, where it is short."""
    if streamed:
        stage.environment["STREAMGRAFT_SPARK_CONF"] = json.dumps({BUFFER: "0"})
    backlog(stage)
    pe = await stage.start_warm(0, [0, 1])
    await stage.write_content(pe, metadata(stage), "1")
    await pe.name_pod()
    # What is written without transactions is part of a batch that is not over: it must come again.
    topics = [stage.output, loose(stage), stage.output]
    for topic in topics:
        ends = Ends(stage, topic)
        await killed_while_writing(pe, ends)
        ends.close()
        await stage.delete_pod(pe)
        pe = await stage.start_process(pe.name, 0)
    last = RECORDS // KEYS
    plain = stage.operator == "plain"
    newest = last - 1 if plain else last

    def done(found: dict[str, list[int]]) -> bool:
        return all(newest in values for values in found.values())

    exact = await asyncio.to_thread(read, stage, stage.output, done)
    repeated = await asyncio.to_thread(read, stage, loose(stage), done)
    for values in exact.values():
        assert values == (list(range(last)) if plain else sorted(set(values)))
    if streamed:  # all sinks were amid a batch
        twice = Counter((key, n) for key, values in repeated.items() for n in values)
        assert max(twice.values()) > 1
    assert {key: set(values) for key, values in exact.items()} == {
        key: set(values) for key, values in repeated.items()
    }
