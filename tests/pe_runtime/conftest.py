"""A small application, PEs of it as real processes, and load that numbers its records."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession
from tests.pe_runtime.chain import chain as chain
from tests.pe_runtime.one_driver import driver
from tests.producers import idempotent

from streamgraft_common import names
from streamgraft_common.adl import Adl, KafkaEndpoint, Operator, Stream
from streamgraft_common.bundle import ADL_FILE, read_bundle
from streamgraft_common.content import Content
from streamgraft_common.kube import KubeClient
from streamgraft_common.pe_metadata import (
    ROCKSDB,
    STATE_STORE_PROVIDER,
    InputPort,
    OutputPort,
    PeMetadata,
)
from streamgraft_common.resources import (
    PROCESSING_ELEMENT,
    ProcessingElementSpec,
    RuntimeStatus,
)
from streamgraft_local import Cluster
from streamgraft_pe_runtime.brokers import Brokers
from streamgraft_pe_runtime.positions import Positions
from streamgraft_pe_runtime.query import ShardQuery

SHARDS = 2
KEYS = 20
_STARTED = count(2)


def own_address() -> str:
    """Return a loopback address that no other process of this run, or of one beside it, has.

    Nodes take theirs from 127.16 upwards (streamgraft_local.node.addresses).
    """
    process = os.getpid()
    return f"127.{1 + process % 15}.{process // 15 % 256}.{next(_STARTED) % 255}"


MODULE = """
from pathlib import Path
from pyspark.sql import functions as F
from streamgraft import Application, shutdown_pe

app = Application("numbers")
broken = app.parameter("broken", default="")
least = app.parameter("least", default="0")


@app.operator(inputs="numbers")
def plain(frame):
    def check(n):
        if broken.value and Path(broken.value).exists():
            if Path(broken.value).read_text() == "enough":
                shutdown_pe()
            else:
                raise ValueError("the service is out of order")
        return n
    frame = frame.where(f"n >= {least.value}")
    return frame.withColumn("n", F.udf(check, "long")("n")) if broken.value else frame


@app.operator(inputs="numbers")
def merged(frame):
    keys = frame.sparkSession.range(1000).selectExpr("concat('k', id) as key")
    return frame.hint("merge").join(keys.hint("merge"), "key")


@app.operator(inputs="numbers", output_mode="update")
def counted(frame):
    return frame.groupBy("key").agg(F.count("*").alias("n"))


@app.operator(inputs="numbers", output_mode="update")
def distinct(frame):
    return frame.dropDuplicates(["key", "n"]).groupBy("key").agg(F.count("*").alias("n"))
"""


def schema(**fields: str) -> dict[str, Any]:
    """Return a StructType in Spark's JSON form."""
    return {
        "type": "struct",
        "fields": [
            {"name": name, "type": kind, "nullable": True, "metadata": {}}
            for name, kind in fields.items()
        ],
    }


ADL = Adl(
    name="numbers",
    built_by="test",
    module="numbers_application",
    application="app",
    operators=[
        *(
            Operator(name=name, kind="function", inputs=["numbers"], outputs=[name])
            for name in ("plain", "merged")
        ),
        *(
            Operator(
                name=name,
                kind="function",
                inputs=["numbers"],
                outputs=[name],
                stateful=True,
                joint_state=True,
                output_mode="update",
            )
            for name in ("counted", "distinct")
        ),
        Operator(
            name="loose",
            kind="kafka-sink",
            kafka=KafkaEndpoint(topic="loose", delivery="at_least_once"),
        ),
    ],
    streams=[
        Stream(name=name, producer="outside", schema=schema(key="string", n="long"))
        for name in ("numbers", "plain", "merged", "counted", "distinct")
    ],
    parameters={"broken": "", "least": "0"},
)


def content(plan: str, code: str = "code") -> str:
    """Return the content of a PE that differs by its plan and its code only."""
    return str(Content("driver", "place", code, plan, "notes"))


@dataclass
class Stage:
    """A stage of a region with two key groups, and its topics; PEs of it are real processes."""

    cluster: Cluster
    kube: KubeClient
    namespace: str
    folder: Path
    operator: str
    parameters: dict[str, str] = field(default_factory=dict)
    real_time: bool = False
    spark_conf: dict[str, str] = field(default_factory=dict)
    processes: list["Pe"] = field(default_factory=list)
    external: bool = False
    """Whether the input topic is a user's."""
    may_lose: bool = False
    """Whether the input is read on behind records that are gone."""
    environment: dict[str, str] = field(default_factory=dict)
    """Further variables of PEs that are started from now on."""

    @property
    def input(self) -> str:
        """The input topic."""
        return f"{self.namespace}.numbers.in"

    @property
    def output(self) -> str:
        """The output topic."""
        return f"{self.namespace}.numbers.out"

    def prepare(self) -> None:
        """Make the topics, the bundle and the graph metadata."""
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap_servers})
        topics = [NewTopic(name, SHARDS, 1) for name in (self.input, self.output)]
        for created in admin.create_topics(topics).values():
            created.result()
        self.write_bundle(MODULE)

    def write_bundle(self, module: str, **helpers: str) -> str:
        """Write the bundle, with texts of further modules; return its digest."""
        draft = self.folder / "bundle.draft"
        with zipfile.ZipFile(draft, "w") as archive:
            archive.writestr(ADL_FILE, ADL.model_dump_json(by_alias=True))
            archive.writestr("numbers_application.py", module)
            for name, text in helpers.items():
                archive.writestr(f"{name}.py", text)
        draft.rename(self.folder / "bundle.zip")
        return read_bundle((self.folder / "bundle.zip").read_bytes()).digest

    def metadata(self) -> PeMetadata:
        """Return the graph metadata, the same for all channels."""
        servers = self.cluster.bootstrap_servers
        source = InputPort(
            port=0,
            stream="numbers",
            topic=self.input,
            partitions=SHARDS,
            bootstrap_servers=servers,
            operator=self.operator,
            external=self.external,
            may_lose=self.may_lose,
        )
        sink = OutputPort(
            port=1,
            stream=self.operator,
            topic=self.output,
            partitions=SHARDS,
            bootstrap_servers=servers,
            key=["key"],
            keep_partition=True,
            operator=self.operator,
        )
        return PeMetadata(
            namespace=self.namespace,
            job="numbers",
            pe_id=0,
            stage_name="work",
            region="work",
            channel=0,
            shard_count=SHARDS,
            operators=[self.operator],
            inputs=[source],
            outputs=[sink],
            checkpoint_path=f"{self.namespace}/numbers/work",
            parameters=self.parameters,
            trigger_seconds=0.5,
            real_time=self.real_time,
            spark_conf=self.spark_conf,
            slots=2,
            bundle_digest="",
        )

    async def start(self, number: int, shards: list[int]) -> "Pe":
        """Create a ProcessingElement and start its process, as operator and node would."""
        pe = await self.start_warm(number, shards)
        await pe.name_pod()
        return pe

    async def start_warm(self, number: int, shards: list[int]) -> "Pe":
        """Create a ProcessingElement that names no pod, and start a process that could be its."""
        name = await self.create(number, shards)
        pe = await self.start_process(name, number)
        await self.write_content(pe, self.metadata(), "1")
        return pe

    async def create(self, number: int, shards: list[int]) -> str:
        """Create a ProcessingElement that names no pod, and return its name."""
        name = names.pe_name("numbers", number)
        spec = ProcessingElementSpec(
            job="numbers", pe_id=number, stage_name="work", region="work", shards=shards, epoch=1
        )
        manifest = PROCESSING_ELEMENT.manifest(
            name,
            self.namespace,
            spec,
            labels={names.LABEL_JOB: "numbers"},
            annotations={names.ANNOTATION_CONTENT: content("1")},
        )
        await self.kube.create(PROCESSING_ELEMENT.path(self.namespace), manifest)
        return name

    async def start_process(self, name: str, number: int) -> "Pe":
        """Create the pod of a PE's first launch, which no node runs, and start its process."""
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        pod = {
            "metadata": {"name": f"{name}-1"},
            "spec": {"schedulerName": "none", "containers": [{"name": "pe", "image": "none"}]},
        }
        uid = (await self.kube.create(path, pod))["metadata"]["uid"]
        pe = Pe(self, name, uid, own_address())
        self.processes.append(pe)
        return pe

    async def delete_pod(self, pe: "Pe") -> None:
        """Delete the pod of a process by force, as after the loss of its node."""
        path = f"/api/v1/namespaces/{self.namespace}/pods/{pe.name}-1"
        await self.kube.request("DELETE", path, body={"gracePeriodSeconds": 0})

    async def write_content(
        self, pe: "Pe", metadata: PeMetadata, plan: str, code: str = "code"
    ) -> None:
        """Write the graph metadata of a PE, as the operator does."""
        manifest = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": pe.name,
                "annotations": {names.ANNOTATION_CONTENT: content(plan, code)},
            },
            "data": {names.PE_METADATA_KEY: metadata.model_dump_json(by_alias=True)},
        }
        path = f"/api/v1/namespaces/{self.namespace}/configmaps/{pe.name}"
        await self.kube.apply(path, manifest, "test")


class Pe:
    """One PE: its resource and the process of its pod, which has this uid."""

    def __init__(self, stage: Stage, name: str, uid: str, address: str) -> None:
        self.stage = stage
        self.name = name
        self.uid = uid
        self.address = address
        self.log = stage.folder / f"{name}-{uid}.log"
        tools = stage.cluster.state().tools
        environment = {
            **os.environ,
            "KUBECONFIG": str(stage.cluster.kubeconfig),
            "STREAMGRAFT_NAMESPACE": stage.namespace,
            "STREAMGRAFT_JOB": "numbers",
            "STREAMGRAFT_POD": f"{name}-1",
            "STREAMGRAFT_POD_UID": uid,
            "STREAMGRAFT_BIND_ADDRESS": address,
            "STREAMGRAFT_BUNDLE": str(stage.folder / "bundle.zip"),
            "STREAMGRAFT_CHECKPOINT_ROOT": str(stage.folder / "checkpoints"),
            "STREAMGRAFT_HEAP_MB": "300",
            "STREAMGRAFT_SLOTS": "2",
            "STREAMGRAFT_SPARK_CONF": json.dumps(stage.spark_conf),
            "STREAMGRAFT_JAVA": str(tools.java),
            "STREAMGRAFT_JARS": str(tools.driver_jars),
            **stage.environment,
        }
        if tools.cds_archive:
            environment["STREAMGRAFT_CDS_ARCHIVE"] = str(tools.cds_archive)
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "streamgraft_pe_runtime"],
                env=environment,
                stdout=log,
                stderr=log,
            )

    async def name_pod(self, launch: int = 1) -> None:
        """Have the ProcessingElement name the pod of a launch; the process is that of the first."""
        path = PROCESSING_ELEMENT.path(self.stage.namespace, self.name)
        named = {"pod": f"{self.name}-{launch}", "launchCount": launch}
        await self.stage.kube.patch(f"{path}/status", {"status": named})

    async def replan(self, metadata: PeMetadata, plan: str, code: str = "code") -> None:
        """Change what the PE is made of in a way that needs no new pod."""
        await self.stage.write_content(self, metadata, plan, code)
        path = PROCESSING_ELEMENT.path(self.stage.namespace, self.name)
        annotations = {names.ANNOTATION_CONTENT: content(plan, code)}
        await self.stage.kube.patch(path, {"metadata": {"annotations": annotations}})

    async def assign(self, shards: list[int], epoch: int) -> None:
        """Write the spec, as the operator does."""
        path = PROCESSING_ELEMENT.path(self.stage.namespace, self.name)
        await self.stage.kube.patch(path, {"spec": {"shards": shards, "epoch": epoch}})

    async def status(self) -> RuntimeStatus:
        """Return what the PE says of itself in its resource."""
        path = PROCESSING_ELEMENT.path(self.stage.namespace, self.name)
        item = await self.stage.kube.get(path)
        return RuntimeStatus.model_validate(item.get("status", {}).get("runtime", {}))

    async def until(
        self, condition: Callable[[RuntimeStatus], bool], seconds: float = 60.0
    ) -> RuntimeStatus:
        """Wait until the status meets a condition."""
        deadline = time.monotonic() + seconds
        while not condition(status := await self.status()):
            assert self.process.poll() is None, self.log.read_text()[-4000:]
            assert time.monotonic() < deadline, f"{status}\n{self.log.read_text()[-4000:]}"
            await asyncio.sleep(0.02)
        return status

    async def running(self, *shards: int) -> RuntimeStatus:
        """Wait until exactly these shards have completed a trigger."""

        def reached(status: RuntimeStatus) -> bool:
            started = [int(n) for n, shard in status.shards.items() if shard.first_batch_at]
            return sorted(started) == sorted(shards) and len(status.shards) == len(shards)

        return await self.until(reached, 240)

    async def answers(self, path: str, code: int, seconds: float = 240.0) -> None:
        """Wait until the control port answers a path with a code."""
        deadline = time.monotonic() + seconds
        while (await self.get(path))[0] != code:
            assert self.process.poll() is None, self.log.read_text()[-4000:]
            assert time.monotonic() < deadline, self.log.read_text()[-4000:]
            await asyncio.sleep(0.02)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process and to its JVM."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        for pid in (self.process.pid, *map(int, children.split())):
            os.kill(pid, number)

    async def get(self, path: str) -> tuple[int, str]:
        """Ask the control port; status 0: nobody listens."""
        url = f"http://{self.address}:{names.CONTROL_PORT}{path}"
        try:
            async with aiohttp.ClientSession() as session, session.get(url) as answer:
                return answer.status, await answer.text()
        except aiohttp.ClientConnectionError:
            return 0, ""

    async def terminate(self) -> int:
        """Send SIGTERM and return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return await asyncio.to_thread(self.process.wait, 40)


class Load:
    """Writes numbered records at a rate, each key's from 0 on, until stopped."""

    def __init__(self, bootstrap_servers: str, topic: str, per_second: int) -> None:
        self._servers = bootstrap_servers
        self._topic = topic
        self._per_second = per_second
        self._stop = threading.Event()
        self.sent = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> dict[str, int]:
        """Stop, and return how many records each key has."""
        self._stop.set()
        self._thread.join()
        return {f"k{key}": (self.sent - key + KEYS - 1) // KEYS for key in range(KEYS)}

    def _run(self) -> None:
        producer = idempotent(self._servers)
        began = time.monotonic()
        while not self._stop.wait(0.01):
            while self.sent < (time.monotonic() - began) * self._per_second:
                number, key = divmod(self.sent, KEYS)
                value = json.dumps({"key": f"k{key}", "n": number})
                producer.produce(self._topic, value, f"k{key}", partition=key % SHARDS)
                self.sent += 1
            producer.poll(0)
        producer.flush(10)


class Output:
    """Reads an output topic from its start, per key in order."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self._consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "test"})
        self._consumer.assign([TopicPartition(topic, number, 0) for number in range(SHARDS)])
        self.values: dict[str, list[int]] = {}

    def until(self, condition: Callable[[dict[str, list[int]]], bool], seconds: float = 60) -> None:
        """Read until what was read meets a condition."""
        deadline = time.monotonic() + seconds
        while not condition(self.values):
            assert time.monotonic() < deadline, {k: v[-3:] for k, v in self.values.items()}
            self.read(0.2)

    def read(self, seconds: float) -> None:
        """Read what is there."""
        for message in self._consumer.consume(10_000, seconds):
            assert message.error() is None
            row = json.loads(message.value() or b"")
            assert (message.key() or b"").decode() == row["key"]
            assert message.partition() == int(row["key"][1:]) % SHARDS
            self.values.setdefault(row["key"], []).append(row["n"])

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()


def until_reported(running: ShardQuery) -> None:
    """Wait until a query has ended a batch: Spark tells nobody."""
    deadline = time.monotonic() + 240
    while not running.reports(-1):
        assert running.failure() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)


async def published(brokers: Brokers, positions: Positions) -> None:
    """Publish as a PE does: a broker that has just started coordinates no groups yet."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await asyncio.to_thread(brokers.publish, positions)
            except KafkaException:
                await asyncio.sleep(0.2)


@pytest.fixture(scope="module")
def session(cluster: Cluster) -> Iterator[SparkSession]:
    """A driver with the settings of a PE."""
    with driver(cluster, {}) as found:
        yield found


@pytest.fixture
async def stage(
    without_operator: Cluster,
    kube: KubeClient,
    namespace: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> AsyncIterator[Stage]:
    """A stage of the operator named by the test's parameter: plain (the default), counted, distinct
    (with two states), merged (which may mix shards), broken or "real time" (plain in that mode);
    "… on RocksDB" keeps state there."""
    operator, _, store = getattr(request, "param", "plain").partition(" on ")
    parameters = {"broken": str(tmp_path / "broken")} if operator == "broken" else {}
    name = operator if operator in ("counted", "distinct", "merged") else "plain"
    real_time = operator == "real time"
    conf = {STATE_STORE_PROVIDER: ROCKSDB} if store else {}
    found = Stage(without_operator, kube, namespace, tmp_path, name, parameters, real_time, conf)
    await asyncio.to_thread(found.prepare)
    yield found
    for pe in found.processes:
        if pe.process.poll() is None:
            pe.process.kill()
            pe.process.wait()


@pytest.fixture
def load(stage: Stage) -> Iterator[Callable[[int], Load]]:
    """Starts load on the stage's input."""
    started: list[Load] = []

    def start(per_second: int) -> Load:
        started.append(Load(stage.cluster.bootstrap_servers, stage.input, per_second))
        return started[-1]

    yield start
    for item in started:
        item.stop()


@pytest.fixture
def output(stage: Stage) -> Iterator[Output]:
    """What the stage writes."""
    reader = Output(stage.cluster.bootstrap_servers, stage.output)
    yield reader
    reader.close()
