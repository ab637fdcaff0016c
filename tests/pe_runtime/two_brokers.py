"""Kafka brokers of a test beside that of the cluster: one, or two of which the second may die."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from confluent_kafka.admin import AdminClient

from streamgraft_local import Cluster, ports
from streamgraft_local.components import kafka
from streamgraft_local.components.model import Setting
from streamgraft_local.paths import Home
from streamgraft_local.runner import Runner

SECONDS = 60
LOG_PARTITIONS = 8
"""Of each coordinator's log."""

_COPIES = {
    "default.replication.factor": 2,
    "offsets.topic.replication.factor": 2,
    "transaction.state.log.replication.factor": 2,
    "broker.heartbeat.interval.ms": 500,
    "broker.session.timeout.ms": 9000,
    "offsets.topic.num.partitions": LOG_PARTITIONS,
    "transaction.state.log.num.partitions": LOG_PARTITIONS,
}


@dataclass(frozen=True)
class TwoBrokers:
    """They run; both have all topics."""

    bootstrap_servers: str
    kill_second: Callable[[], None]

    def leader(self, topic: str, partition: int) -> int:
        """Return the number of the broker that leads a partition, once there is one."""
        return self._leader_that(lambda leader: leader > 0, topic, partition)

    def until_moved(self, topic: str, partition: int) -> None:
        """Wait until the first broker leads a partition."""
        self._leader_that(lambda leader: leader == 1, topic, partition)

    def _leader_that(self, holds: Callable[[int], bool], topic: str, partition: int) -> int:
        # Kafka tells nobody of elections: clients ask again, too.
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers})
        deadline = time.monotonic() + SECONDS
        while True:
            found = admin.list_topics(topic, timeout=10).topics[topic].partitions.get(partition)
            if found is not None and holds(found.leader):
                return int(found.leader)
            assert time.monotonic() < deadline
            time.sleep(0.1)


def partition_of(identity: str) -> int:
    """Return the partition of a coordinator's log that an id belongs to, by Java's hash."""
    value = 0
    for letter in identity:
        value = (31 * value + ord(letter)) & 0xFFFFFFFF
    return (value & 0x7FFFFFFF) % LOG_PARTITIONS


def _setting(cluster: Cluster, root: Path) -> Setting:
    state, home = cluster.state(), Home(root)
    home.create()
    chosen = ports.choose(("kafka", "kafka-controller"), {})
    return Setting(state.spec, home, chosen, state.tools)


def _add(setting: Setting, settings: Mapping[str, object]) -> None:
    with (setting.home.config / "kafka.properties").open("a") as file:
        file.writelines(f"{name}={value}\n" for name, value in settings.items())


@contextmanager
def another_broker(
    cluster: Cluster, root: Path, settings: Mapping[str, object] | None = None
) -> Iterator[str]:
    """Run the one broker of a Kafka cluster of its own; return its address."""
    setting = _setting(cluster, root)
    runner = Runner(setting.home, cluster.state().id)
    broker = kafka.broker(setting)

    def prepare() -> None:
        assert broker.prepare
        broker.prepare()
        _add(setting, settings or {})

    try:
        runner.start(replace(broker, prepare=prepare))
        yield kafka.bootstrap_servers(setting)
    finally:
        runner.stop({"kafka": broker.grace_seconds})


@contextmanager
def two_brokers(cluster: Cluster, root: Path) -> Iterator[TwoBrokers]:
    """Run two brokers as processes of the cluster; the first is their controller."""
    state = cluster.state()
    settings = [_setting(cluster, root / str(number)) for number in (1, 2)]
    first, second = settings
    runners = [Runner(item.home, state.id) for item in settings]

    def prepare_first() -> None:
        plain = kafka.broker(first).prepare
        assert plain
        plain()
        _add(first, _COPIES)

    def prepare_second() -> None:
        file = second.home.config / "kafka.properties"
        controller = f"127.0.0.1:{first.ports['kafka-controller']}"
        others = {
            "process.roles": "broker",
            "node.id": 2,
            "controller.quorum.voters": f"1@{controller}",
            "listeners": f"PLAINTEXT://{kafka.bootstrap_servers(second)}",
        }
        file.write_text(kafka.properties(second))
        _add(second, _COPIES | others)
        log4j = "kafka-log4j2.yaml"
        (second.home.config / log4j).write_bytes((first.home.config / log4j).read_bytes())
        meta = (first.folder("kafka") / "logs" / "meta.properties").read_text().splitlines()
        (known,) = [line.partition("=")[2] for line in meta if line.startswith("cluster.id=")]
        command = (*kafka._java(second, ("-Xmx64m",)), "kafka.tools.StorageTool", "format")
        subprocess.run([*command, "--cluster-id", known, "--config", str(file)], check=True)

    grace = kafka.broker(first).grace_seconds
    try:
        for runner, setting, prepare in zip(
            runners, settings, (prepare_first, prepare_second), strict=True
        ):
            runner.start(replace(kafka.broker(setting), prepare=prepare))

        def kill_second() -> None:
            process = runners[1].process("kafka")
            assert process
            os.kill(process.pid, signal.SIGKILL)

        servers = ",".join(map(kafka.bootstrap_servers, settings))
        yield TwoBrokers(servers, kill_second)
    finally:
        for runner in reversed(runners):
            runner.stop({"kafka": grace})
