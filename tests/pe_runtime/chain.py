"""A query from a topic into two topics, in the driver of the test, for tests of the sink.

A crash between the commit in Kafka and Spark's own leaves a batch in the checkpoint that is begun
and not committed. That is made here by hand; test_kills.py does it with kill -9.
"""

import json
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.pe_runtime.one_driver import PARTITIONS, make_topic, write

from streamgraft_common import names
from streamgraft_local import Cluster
from streamgraft_pe_runtime import query
from streamgraft_pe_runtime.plan import IMPATIENT, READ_COMMITTED, Plan
from streamgraft_pe_runtime.query import ShardQuery
from streamgraft_pe_runtime.targets import MAIN, KafkaTarget

SECONDS = 60
PER_BATCH = 30
TARGETS = 2


@dataclass
class Chain:
    """A query from a topic into two topics by two targets, each record into both."""

    session: SparkSession
    cluster: Cluster
    checkpoint: Path
    source: str
    outputs: tuple[str, ...]
    identity: str = field(default_factory=lambda: f"shard-{uuid.uuid4().hex[:8]}")
    options: dict[str, str] = field(default_factory=dict)
    """Of the producers of targets that are not shared."""
    shared: frozenset[int] = frozenset()
    """Numbers of the outputs that share the main target; the others have their own."""
    conditions: dict[int, str] = field(default_factory=dict)
    """Of the numbers that an output takes; it takes all if there is none."""
    at_least_once: bool = False
    change: Callable[[DataFrame], DataFrame] = lambda frame: frame
    running: ShardQuery | None = None

    def targets(self) -> list[KafkaTarget]:
        """Return the targets; each has a producer and a ledger of its own."""
        found = {
            self._place(number): topic for number, topic in reversed([*enumerate(self.outputs)])
        }
        found[MAIN] = self.source  # whatever is written to it, if anything
        places = sorted(found, key=lambda name: (name == MAIN and not self.shared, name))
        targets = [self._target(name, found[name]) for name in places]
        return [item.at_least_once() for item in targets] if self.at_least_once else targets

    def _place(self, number: int) -> str:
        return MAIN if number in self.shared else f"sink-{number}"

    def _target(self, name: str, topic: str) -> KafkaTarget:
        sink = "" if name == MAIN else name
        return KafkaTarget.at(
            self.cluster.bootstrap_servers,
            False,
            topic,
            name=name,
            options=self.options if sink else {},
            transactional_id=names.transactional_id("n", self.identity, "s", 0, sink),
        )

    def start(self) -> ShardQuery:
        """Start the query on its checkpoint."""
        options = {
            "kafka.bootstrap.servers": self.cluster.bootstrap_servers,
            "subscribe": self.source,
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": str(PER_BATCH),
            **READ_COMMITTED,
            **IMPATIENT,
        }
        rows = self.change(self.session.readStream.format("kafka").options(**options).load())
        known = [target.name for target in self.targets()]
        n = "get_json_object(cast(value as string), '$.n')"
        record = [
            f"if({self.conditions.get(number, 'true').format(n=n)}, named_struct('target',"
            f" {known.index(self._place(number))}, 'topic', '{topic}', 'value', value), null)"
            for number, topic in enumerate(self.outputs)
        ]
        frame = rows.select(F.expr(f"explode(array_compact(array({', '.join(record)}))) as record"))
        plan = Plan(frame.select("record.*"), self.targets(), "update")
        self.running = query.start(plan, self.checkpoint, 0.1, f"chain-{uuid.uuid4()}")
        return self.running

    def stop(self) -> None:
        """Stop at a batch boundary."""
        assert self.running
        assert self.running.stop(SECONDS)

    def write(self, first: int, last: int) -> None:
        """Write numbered records."""
        write(self.cluster, self.source, range(first, last))

    def read(self, count: int, second: int | None = None) -> list[Counter[int]]:
        """Wait for so many different numbers in both outputs, or for others in the second; return
        how often each is there."""
        found = [Counter[int](), Counter[int]()]
        counts = (count, count if second is None else second)
        consumers = [
            Consumer({"bootstrap.servers": self.cluster.bootstrap_servers, "group.id": "test"})
            for _ in self.outputs
        ]
        for consumer, topic in zip(consumers, self.outputs, strict=True):
            consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
        deadline = time.monotonic() + SECONDS
        while any(len(counter) < least for counter, least in zip(found, counts, strict=True)):
            failure = self.running.failure() if self.running else None
            assert failure is None, failure
            assert time.monotonic() < deadline, list(map(len, found))
            for consumer, counter in zip(consumers, found, strict=True):
                for message in consumer.consume(1000, 0.2):
                    counter[json.loads(message.value() or b"")["n"]] += 1
        for consumer, counter in zip(consumers, found, strict=True):
            for message in consumer.consume(1000, 1.0):
                counter[json.loads(message.value() or b"")["n"]] += 1
            consumer.close()
        return found

    def failure(self) -> str:
        """Wait until the query fails, and return what is shown of that."""
        assert self.running
        deadline = time.monotonic() + SECONDS
        while not (failure := self.running.failure()):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        self.running.stop(0)
        return failure

    def last_batch(self) -> int:
        """Return the newest batch of the checkpoint."""
        return max(int(file.name) for file in (self.checkpoint / "offsets").glob("[0-9]*"))

    def forget(self, *entries: str) -> None:
        """Remove entries of the checkpoint's logs."""
        for entry in entries:
            (self.checkpoint / entry).unlink()

    def lose_ledgers(self, *targets: str) -> None:
        """Delete the consumer groups of these targets, or of all, as brokers do with those that
        nobody uses."""
        groups = [
            names.ledger_group(item.transactional_id or "")
            for item in self.targets()
            if item.name in targets or not targets
        ]
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap_servers})
        for deleted in admin.delete_consumer_groups(groups).values():
            deleted.result()

    def forget_last_batch(self, target: KafkaTarget) -> None:
        """Have a ledger, which was at one topic only, say that the last batch is not written."""
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap_servers})
        group = names.ledger_group(target.transactional_id or "")
        asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
        (noted,) = asked[group].result().topic_partitions
        noted.offset -= 1
        change = ConsumerGroupTopicPartitions(group, [noted])
        admin.alter_consumer_group_offsets([change])[group].result()


@pytest.fixture
def chain(session: SparkSession, cluster: Cluster, tmp_path: Path) -> Iterator[Chain]:
    """A chain that does not run yet."""
    with chain_at(session, cluster, tmp_path / "checkpoint") as found:
        yield found


@contextmanager
def chain_at(session: SparkSession, cluster: Cluster, checkpoint: Path) -> Iterator[Chain]:
    """Make a chain with topics of its own, which does not run yet."""
    source = make_topic(cluster)
    outputs = (f"{source}-a", f"{source}-b")
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for made in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in outputs]).values():
        made.result()
    found = Chain(session, cluster, checkpoint, source, outputs)
    yield found
    if found.running:
        found.running.stop(0)


def once(count: int) -> list[Counter[int]]:
    """Return what is to be there of so many records."""
    return [Counter(range(count))] * TARGETS


def crashed_behind_the_commit(chain: Chain, count: int) -> None:
    """Run until all is written, and leave the last batch as if Spark had not committed it."""
    chain.write(0, count)
    chain.start()
    chain.read(count)
    chain.stop()
    chain.forget(f"commits/{chain.last_batch()}")
