"""What exactly once costs, beside Spark's own sink: `make bench-exactly-once`.

Both sinks write the same plan in the same driver, in turns, so that whatever else the machine does
hits both. Then the pods of all PEs of a job are killed under load (SIGKILL), and what came out
is counted. Everything is real.
"""

import asyncio
import json
import os
import signal
import statistics
import tempfile
import threading
import time
import uuid
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bench import report
from bench.cluster import Deployed, application, running_cluster
from bench.pods import process_of
from bench.traffic import Load, Probe, create_topic, keys_by_group
from streamgraft_common.spark_jvm import JvmSettings, SparkJvm
from streamgraft_local import Cluster
from streamgraft_pe_runtime import local_files, query
from streamgraft_pe_runtime.conf import spark_conf
from streamgraft_pe_runtime.plan import AT_ONCE, READ_COMMITTED, Plan
from streamgraft_pe_runtime.targets import KafkaTarget
from streamgraft_pe_runtime.triggers import Triggers

SINKS = ("exact", "stock")
ROUNDS = 3
WARM_SECONDS = 15.0
SMALL_SECONDS = 20.0
SMALL_TRIGGER_SECONDS = 0.2
SMALL_RATE = 20.0
LARGE_RECORDS = 600_000
LARGE_BATCH = 100_000
LARGE_TRIGGER_SECONDS = 0.01
"""Batches take longer: each follows the one before at once."""
VALUE_BYTES = 100
KILLS = 9
KILL_RATE, CALM_RATE = 1000.0, 50.0
KILL_SECONDS = 3.0
GROUPS = 2
KEYS_PER_GROUP = 4
PATIENCE_SECONDS = 120.0


@dataclass
class Costs:
    """Of one sink, over all rounds."""

    latencies_ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)
    """Of a small batch."""
    records_per_second: list[float] = field(default_factory=list)
    """Of large batches."""


class Bench:
    """A driver that copies topics, by either sink."""

    def __init__(self, servers: str, settings: JvmSettings) -> None:
        self._servers = servers
        self._jvm = SparkJvm.start(spark_conf("bench", 2, {}), settings)
        self._session: SparkSession = self._jvm.attach()
        local_files.install(self._session)
        self._backlog = self._written()

    def close(self) -> None:
        """End the driver."""
        self._jvm.stop()

    def small(self, sink: str, seconds: float) -> tuple[list[float], float]:
        """Return latencies (ms) and the CPU time of a batch (ms), at a few records a batch."""
        source, target = self._topics()
        with tempfile.TemporaryDirectory() as folder:
            running = self._start(sink, source, target, Path(folder), SMALL_TRIGGER_SECONDS)
            deadline = time.monotonic() + PATIENCE_SECONDS
            while not _batches(running):
                _check(running, deadline)
                self._trickle(source, SMALL_TRIGGER_SECONDS)
            reader = _Reader(self._servers, target)
            cpu, before = self._cpu_seconds(), len(running.reports(-1))
            self._trickle(source, seconds)
            time.sleep(2 * SMALL_TRIGGER_SECONDS + 1)
            batches = _batches(running) - before
            spent = self._cpu_seconds() - cpu
            running.stop(30)
        return reader.stop(), spent * 1000 / batches

    def large(self, sink: str) -> float:
        """Return the records a second of batches as large as they may be."""
        _, target = self._topics()
        with tempfile.TemporaryDirectory() as folder:
            running = self._start(sink, self._backlog, target, Path(folder), LARGE_TRIGGER_SECONDS)
            rates: dict[int, float] = {}
            deadline = time.monotonic() + PATIENCE_SECONDS
            while sum(1 for _ in rates) < LARGE_RECORDS // LARGE_BATCH:
                _check(running, deadline)
                for batch in running.reports(-1):
                    seconds = batch["durationMs"]["triggerExecution"] / 1000
                    rates[batch["batchId"]] = batch["numInputRows"] / seconds
                time.sleep(0.1)
            running.stop(30)
        return statistics.median(rates.values())

    def _start(
        self, sink: str, source: str, target: str, folder: Path, seconds: float
    ) -> query.ShardQuery:
        options = {
            "kafka.bootstrap.servers": self._servers,
            "subscribe": source,
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": str(LARGE_BATCH),
            **READ_COMMITTED,
            **AT_ONCE,
        }
        frame = self._session.readStream.format("kafka").options(**options).load()
        rows = frame.select(F.lit(0).alias("target"), F.lit(target).alias("topic"), "key", "value")
        owner = f"bench.{uuid.uuid4()}"
        goal = KafkaTarget.at(self._servers, False, target, transactional_id=owner)
        if sink == "exact":
            return query.start(Plan(rows, [goal], "update"), folder, seconds, target)
        writer = rows.drop("target").writeStream.format("kafka").options(**goal.sink_options)
        writer = writer.option("checkpointLocation", str(folder)).outputMode("update")
        interval = f"{round(seconds * 1000)} milliseconds"
        timing = Triggers(self._session, seconds, 0.0)
        running = writer.trigger(processingTime=interval).start()
        return query.ShardQuery(self._session, running, timing, folder)

    def _trickle(self, topic: str, seconds: float) -> None:
        producer = Producer({"bootstrap.servers": self._servers, "linger.ms": 0})
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            producer.produce(topic, json.dumps({"at": time.time()}))
            producer.poll(1 / SMALL_RATE)
        producer.flush(10)

    def _written(self) -> str:
        topic, _ = self._topics()
        producer = Producer(
            {"bootstrap.servers": self._servers, "queue.buffering.max.messages": LARGE_RECORDS}
        )
        for number in range(LARGE_RECORDS):
            producer.produce(topic, b"x" * VALUE_BYTES, str(number % 1000))
        producer.flush(60)
        return topic

    def _topics(self) -> tuple[str, str]:
        name = f"bench-{uuid.uuid4().hex[:8]}"
        for topic in (name, f"{name}.out"):
            create_topic(self._servers, topic, 2)
        return name, f"{name}.out"

    def _cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self._jvm.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(int(field) for field in fields[11:13]) / os.sysconf("SC_CLK_TCK")


def _batches(running: query.ShardQuery) -> int:
    """Return the number of batches with data so far."""
    return max((batch["batchId"] for batch in running.reports(-1)), default=-1) + 1


def _check(running: query.ShardQuery, deadline: float) -> None:
    if failure := running.failure():
        raise RuntimeError(failure)
    if time.monotonic() > deadline:
        raise TimeoutError("the query came to no end")


class _Reader:
    """Reads a topic as downstream does, until stopped."""

    def __init__(self, servers: str, topic: str) -> None:
        settings = {"bootstrap.servers": servers, "group.id": "bench", "fetch.wait.max.ms": "10"}
        self._consumer = Consumer({**settings, "isolation.level": "read_committed"})
        self._consumer.assign([TopicPartition(topic, number, 0) for number in (0, 1)])
        self._milliseconds: list[float] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> list[float]:
        """Return how long each record took."""
        self._ended.set()
        self._thread.join()
        self._consumer.close()
        return self._milliseconds

    def _run(self) -> None:
        while not self._ended.is_set():
            message = self._consumer.poll(0.1)
            if message is not None and not message.error():
                sent = json.loads(message.value() or b"")["at"]
                self._milliseconds.append((time.time() - sent) * 1000)


def costs(servers: str, settings: JvmSettings) -> dict[str, Costs]:
    """Measure both sinks in turns."""
    bench = Bench(servers, settings)
    found = {sink: Costs() for sink in SINKS}
    try:
        for sink in SINKS:
            bench.small(sink, WARM_SECONDS)
        for _ in range(ROUNDS):
            for sink in SINKS:
                latencies, cpu = bench.small(sink, SMALL_SECONDS)
                found[sink].latencies_ms += latencies
                found[sink].cpu_ms.append(cpu)
            for sink in SINKS:
                found[sink].records_per_second.append(bench.large(sink))
    finally:
        bench.close()
    return found


async def killed(app: Deployed, load: Load) -> None:
    """Kill the pods of all PEs in turn, under load; wait for each to be healthy again."""
    for number in islice(cycle(range(len(await app.pes()))), KILLS):
        await app.calm(warm_pool=0)
        load.rate = KILL_RATE
        await asyncio.sleep(KILL_SECONDS)
        pod = await app.pod((await app.pes())[number]["status"]["pod"])
        os.kill(process_of(pod), signal.SIGKILL)
        load.rate = CALM_RATE
        await asyncio.sleep(KILL_SECONDS)


async def kills(cluster: Cluster) -> dict[str, float]:
    """Return what kills have done to records between the outside topics."""
    keys = keys_by_group(GROUPS, KEYS_PER_GROUP)
    every_key = [key for same_rank in zip(*keys.values(), strict=True) for key in same_rank]
    servers = cluster.bootstrap_servers
    create_topic(servers, "bench-in-recovery", 1)
    source = Path(__file__).parent / "applications" / "recovery.py"
    async with application(cluster, source) as app:
        with Probe(servers, "bench-out-recovery", GROUPS) as probe:
            with Load(servers, "bench-in-recovery", every_key, CALM_RATE) as load:
                await killed(app, load)
            await probe.drained(load.sent)
    return {
        "kills": KILLS,
        "sent": load.sent,
        "lost": probe.arrivals.lost(load.sent),
        "duplicated": probe.arrivals.duplicated(),
    }


def figures(found: dict[str, Costs]) -> dict[str, float]:
    """Return the figures of both sinks, and what the one adds to the other."""
    values: dict[str, float] = {}
    for sink, costs in found.items():
        values[f"latency_ms_p50.{sink}"] = round(statistics.median(costs.latencies_ms), 1)
        values[f"latency_ms_p99.{sink}"] = round(report.percentile(costs.latencies_ms, 0.99), 1)
        values[f"cpu_ms_per_batch.{sink}"] = round(statistics.median(costs.cpu_ms), 1)
        values[f"records_per_second.{sink}"] = round(statistics.median(costs.records_per_second))
    exact, stock = SINKS
    added = {
        "added_latency_ms_p50": "latency_ms_p50",
        "added_cpu_ms_per_batch": "cpu_ms_per_batch",
    }
    for name, of in added.items():
        values[name] = round(values[f"{of}.{exact}"] - values[f"{of}.{stock}"], 1)
    rates = [values[f"records_per_second.{sink}"] for sink in SINKS]
    return values | {"throughput_ratio": round(rates[0] / rates[1], 2)}


async def main() -> None:
    """Measure in an environment of its own, print and write the figures."""
    with tempfile.TemporaryDirectory(prefix="streamgraft-bench-") as folder:
        async with running_cluster(Path(folder)) as cluster:
            tools = cluster.state().tools
            settings = JvmSettings(str(tools.java), tools.driver_jars, tools.cds_archive)
            found = await asyncio.to_thread(costs, cluster.bootstrap_servers, settings)
            counted = await kills(cluster)
    described = {
        "small": f"{SMALL_RATE:g} records/s, trigger {SMALL_TRIGGER_SECONDS} s, {ROUNDS} rounds",
        "large": f"batches of {LARGE_BATCH} records of {VALUE_BYTES} bytes, {ROUNDS} rounds",
        "kills": f"all PEs in turn, at {KILL_RATE:g} records/s",
    }
    report.write("exactly-once", described, figures(found) | counted)


if __name__ == "__main__":
    asyncio.run(main())
