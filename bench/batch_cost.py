"""What a micro-batch costs: CPU of the driver per batch and time, of a PE and of stock Spark.

`make bench-batch-cost`. Each case gets ten records a second and partition, with a trigger of a
second: without state over 1 and 8 partitions; groupBy().count() over 8 partitions with 1 and 8
state partitions; and the same over 8 and 32 key groups, as a region's channel runs it, each of
which has a partition and a state of its own. Stock: plain PySpark over as many partitions and state
partitions, Spark's and Java's own settings.
"""

import asyncio
import os
import statistics
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench import report
from bench.cluster import running_cluster
from streamgraft_common.adl import Adl, Operator, Stream
from streamgraft_common.pe_metadata import HDFS, InputPort, OutputPort, PeMetadata
from streamgraft_common.spark_jvm import JvmSettings, SparkJvm
from streamgraft_pe_runtime import local_files, query
from streamgraft_pe_runtime.conf import spark_conf
from streamgraft_pe_runtime.joint_checkpoints import JointCheckpoints
from streamgraft_pe_runtime.plan import Compiler, RealInputs
from streamgraft_pe_runtime.triggers import Triggers

TRIGGER_SECONDS = 1.0
RECORDS_PER_SECOND = 10
STOCK_SLOTS = 2
KEYS = 200
COLD_SECONDS = 30.0
"""Until the measurement begins in a fresh driver; compilers run all the while."""
WARM_SECONDS = 8.0
"""The same for a further query in a warm driver."""
MEASURED_SECONDS = 25.0
FEWEST_BATCHES = 5
SCHEMA = "key string, n bigint"


@dataclass(frozen=True)
class Case:
    """One query: its input partitions, and its state partitions (0: no state)."""

    name: str
    partitions: int
    state_partitions: int = 0
    joint: bool = False
    """Each partition is a shard, and all of them are in one query."""


CASES = (
    Case("stateless_1", 1),
    Case("stateless_8", 8),
    Case("stateful_8_1", 8, 1),
    Case("stateful_8_8", 8, 8),
    Case("joint_8", 8, 8, joint=True),
    Case("joint_32", 32, 32, joint=True),
)
Start = Callable[[SparkSession, Case, str, Path], query.ShardQuery]
"""Starts a case's query from a topic on a checkpoint; the sink's topic has `.out` behind."""


class Application:
    """The application of the cases, as the PE runtime calls it."""

    functions: Mapping[str, Callable[[DataFrame], DataFrame]]

    def __init__(self) -> None:
        self.functions = {"plain": plain, "counted": counted}

    def bind(self, parameters: Mapping[str, str]) -> None:
        """There are none."""


def plain(frame: DataFrame) -> DataFrame:
    """Work without state."""
    return frame.where("n >= 0").withColumn("n", F.col("n") + 1)


def counted(frame: DataFrame) -> DataFrame:
    """Work with state."""
    return frame.groupBy("key").agg(F.count("*").alias("n"))


def start_pe(servers: str) -> Start:
    """Return how a PE starts a case."""

    def start(session: SparkSession, case: Case, topic: str, checkpoint: Path) -> query.ShardQuery:
        local_files.install(session)
        _keep_state_in(session, 1 if case.joint else case.state_partitions or 1)
        metadata, adl = _metadata(case, topic, servers), _adl()
        compiler = Compiler(Application(), adl, metadata)
        inputs = RealInputs(session, metadata, adl)
        if case.joint:
            checkpoints = JointCheckpoints(checkpoint, _nothing_to_end, HDFS)
            shards = range(case.partitions)
            checkpoint = checkpoints.take_over(shards, lambda topic, shard: 0)
            plan = compiler.compile_joint(shards, inputs)
        else:
            plan = compiler.compile((0,), inputs)
        return query.start(plan, checkpoint, TRIGGER_SECONDS, case.name)

    return start


def _keep_state_in(session: SparkSession, partitions: int) -> None:
    session.conf.set("spark.sql.shuffle.partitions", str(partitions))


def _nothing_to_end(checkpoint: Path, shards: Sequence[int]) -> None:
    """Nobody had the shards before."""
    raise AssertionError(f"{checkpoint} has a batch that was cut off")


def start_stock(servers: str) -> Start:
    """Return how plain PySpark starts a case."""

    def start(session: SparkSession, case: Case, topic: str, checkpoint: Path) -> query.ShardQuery:
        _keep_state_in(session, case.state_partitions or 1)
        reader = session.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
        text = reader.option("subscribe", topic).load().selectExpr("cast(value as string) as text")
        rows = text.select(F.from_json("text", SCHEMA).alias("row")).select("row.*")
        result = counted(rows) if case.state_partitions else plain(rows)
        records = result.select("key", F.to_json(F.struct("*")).alias("value"))
        writer = records.writeStream.format("kafka").option("kafka.bootstrap.servers", servers)
        writer = writer.option("topic", f"{topic}.out").outputMode("update")
        writer = writer.option("checkpointLocation", str(checkpoint))
        interval = f"{TRIGGER_SECONDS} seconds"
        running = writer.trigger(processingTime=interval).start()
        return query.ShardQuery(session, running, Triggers(session, TRIGGER_SECONDS), checkpoint)

    return start


def _adl() -> Adl:
    types = {"key": "string", "n": "long"}
    schema = {
        "type": "struct",
        "fields": [
            {"name": name, "type": kind, "nullable": True, "metadata": {}}
            for name, kind in types.items()
        ],
    }
    operators = [
        Operator(
            name=name,
            kind="function",
            inputs=["in"],
            outputs=[name],
            output_mode="update",
            stateful=stateful,
            joint_state=stateful,
        )
        for name, stateful in (("plain", False), ("counted", True))
    ]
    streams = [
        Stream(name=name, producer="test", schema=schema) for name in ("in", "plain", "counted")
    ]
    return Adl(
        name="cost", built_by="", module="", application="", operators=operators, streams=streams
    )


def _metadata(case: Case, topic: str, servers: str) -> PeMetadata:
    operator = "counted" if case.state_partitions else "plain"
    source = InputPort(
        port=0,
        stream="in",
        topic=topic,
        partitions=case.partitions,
        bootstrap_servers=servers,
        operator=operator,
    )
    sink = OutputPort(
        port=0,
        stream=operator,
        topic=f"{topic}.out",
        partitions=case.partitions if case.joint else 1,
        keep_partition=case.joint,
        bootstrap_servers=servers,
        key=["key"],
        operator=operator,
    )
    return PeMetadata(
        namespace="",
        job="cost",
        pe_id=0,
        stage_name="pe-0",
        region="work" if case.joint else None,
        shard_count=case.partitions if case.joint else 1,
        operators=[operator],
        inputs=[source],
        outputs=[sink],
        checkpoint_path="",
        trigger_seconds=TRIGGER_SECONDS,
        bundle_digest="",
    )


@dataclass(frozen=True)
class Cost:
    """What a batch takes: CPU of the driver, and time from its trigger to its end."""

    cpu_ms: float
    duration_ms: float


class Driver:
    """One driver with certain settings, which runs one case after the other."""

    def __init__(
        self, conf: Mapping[str, str], settings: JvmSettings, start: Start, servers: str
    ) -> None:
        self._jvm = SparkJvm.start(conf, settings)
        self._session = self._jvm.attach()
        self._start = start
        self._servers = servers
        self._warm_seconds = COLD_SECONDS

    def cost(self, case: Case) -> Cost:
        """Return what a batch of the case takes."""
        topic = f"cost-{uuid.uuid4().hex[:8]}"
        _make_topics(self._servers, topic, case)
        with tempfile.TemporaryDirectory() as folder:
            running = self._start(self._session, case, topic, Path(folder))
            load = _Load(self._servers, topic, case.partitions)
            _follow(running, self._warm_seconds)
            self._warm_seconds = WARM_SECONDS
            cpu = self._cpu_seconds()
            durations = _follow(running, MEASURED_SECONDS)
            milliseconds = (self._cpu_seconds() - cpu) * 1000
            load.stop()
            running.stop(30)
        return Cost(milliseconds / len(durations), statistics.median(durations))

    def close(self) -> None:
        """End the driver."""
        self._jvm.stop()

    def _cpu_seconds(self) -> float:
        """Return the CPU time of the JVM and of the commands that it has run."""
        fields = Path(f"/proc/{self._jvm.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def _follow(running: query.ShardQuery, seconds: float) -> list[float]:
    """Follow the query for so long, and for some batches at least; how long each of them lasted.

    It is looked at as often as a PE does, and only at what is new, so that it costs what it costs
    there.
    """
    last = max((batch["batchId"] for batch in running.reports(-1)), default=-1)
    began = time.monotonic()
    durations: list[float] = []
    while len(durations) < FEWEST_BATCHES or time.monotonic() < began + seconds:
        for _ in range(5):
            if failure := running.failure():
                raise RuntimeError(failure)
            time.sleep(0.2)
        for batch in running.reports(last):
            last = batch["batchId"]
            durations.append(batch["durationMs"]["triggerExecution"])
    return durations


def _make_topics(servers: str, topic: str, case: Case) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    out = case.partitions if case.joint else 1
    wanted = [NewTopic(topic, case.partitions, 1), NewTopic(f"{topic}.out", out, 1)]
    for created in admin.create_topics(wanted).values():
        created.result()


class _Load:
    """Ten records a second into each partition, until stopped."""

    def __init__(self, servers: str, topic: str, partitions: int) -> None:
        self._producer = Producer({"bootstrap.servers": servers})
        self._topic = topic
        self._partitions = partitions
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop, and wait for what is on its way."""
        self._stop.set()
        self._thread.join()
        self._producer.flush(10)

    def _run(self) -> None:
        number = 0
        while not self._stop.wait(1 / RECORDS_PER_SECOND):
            for partition in range(self._partitions):
                value = f'{{"key": "k{number % KEYS}", "n": {number}}}'
                self._producer.produce(self._topic, value, partition=partition)
                number += 1
            self._producer.poll(0)


STOCK_OPTIONS = (
    "-XX:TieredStopAtLevel=4 -XX:CompileThresholdScaling=1 -XX:-UseSerialGC -XX:+UseG1GC -Xmx1g"
    " -XX:SurvivorRatio=8 -XX:TargetSurvivorRatio=50 -XX:MetaspaceSize=21m -XX:+UsePerfData"
    " -Dlog4j2.contextSelector=org.apache.logging.log4j.core.selector.ClassLoaderContextSelector"
)
"""What spark-submit's JVM would have had: the defaults, in the place of a PE's options."""
STOCK_CONF = {
    "spark.master": f"local[{STOCK_SLOTS}]",
    "spark.ui.enabled": "true",
    "spark.ui.port": "0",
}


def measure(servers: str, settings: JvmSettings) -> dict[str, float]:
    """Return all figures."""
    stock = replace(settings, cds_archive=None, options=STOCK_OPTIONS)
    conf = spark_conf("cost", 1, {})
    drivers: dict[str, Callable[[], Driver]] = {
        "stock": lambda: Driver(STOCK_CONF, stock, start_stock(servers), servers),
        "pe": lambda: Driver(conf, settings, start_pe(servers), servers),
    }
    found: dict[str, dict[str, Cost]] = {}
    for name, make in drivers.items():
        driver = make()
        try:
            found[name] = {case.name: driver.cost(case) for case in CASES}
        finally:
            driver.close()
    figures: dict[str, float] = {}
    for case in CASES:
        ours, theirs = (found[name][case.name] for name in ("pe", "stock"))
        figures[f"{case.name}.cpu_ms"] = round(ours.cpu_ms, 1)
        figures[f"{case.name}.stock_cpu_ms"] = round(theirs.cpu_ms, 1)
        figures[f"{case.name}.ratio_to_stock"] = round(ours.cpu_ms / theirs.cpu_ms, 3)
        figures[f"{case.name}.duration_ms"] = ours.duration_ms
        figures[f"{case.name}.stock_duration_ms"] = theirs.duration_ms
    return figures


async def main() -> None:
    """Measure in an environment of its own, print and write the figures."""
    with tempfile.TemporaryDirectory(prefix="streamgraft-bench-") as folder:
        async with running_cluster(Path(folder)) as cluster:
            tools = cluster.state().tools
            settings = JvmSettings(str(tools.java), tools.driver_jars, tools.cds_archive)
            figures = await asyncio.to_thread(measure, cluster.bootstrap_servers, settings)
    described = {
        "records_per_second_and_partition": RECORDS_PER_SECOND,
        "trigger_seconds": TRIGGER_SECONDS,
        "slots": 1,
        "stock_slots": STOCK_SLOTS,
        "measured_seconds": MEASURED_SECONDS,
    }
    report.write("batch-cost", described, figures)


if __name__ == "__main__":
    asyncio.run(main())
