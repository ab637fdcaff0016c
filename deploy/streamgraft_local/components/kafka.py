"""One Kafka broker in KRaft mode, which is its own controller."""

import base64
import subprocess
import uuid
from functools import partial

from streamgraft_local.components.model import Component, Setting
from streamgraft_local.errors import ComponentError
from streamgraft_local.probes import kafka as kafka_probe

_LOG4J = """\
Configuration:
  Appenders:
    Console:
      name: out
      PatternLayout: {pattern: "%d %p %c{1} - %m%n"}
  Loggers:
    Root:
      level: WARN
      AppenderRef: {ref: out}
    Logger:
      - {name: kafka.server.KafkaRaftServer, level: INFO}
      - {name: org.apache.kafka.common.utils.AppInfoParser, level: ERROR}
"""


def bootstrap_servers(setting: Setting) -> str:
    """Return what Kafka clients connect to."""
    return f"127.0.0.1:{setting.ports['kafka']}"


def properties(setting: Setting) -> str:
    """Return server.properties for a broker whose only clients are on this machine."""
    listener = bootstrap_servers(setting)
    controller = f"127.0.0.1:{setting.ports['kafka-controller']}"
    values = {
        "process.roles": "broker,controller",
        "node.id": 1,
        # A fixed list of voters instead of the one in the log: the port may change.
        "controller.quorum.voters": f"1@{controller}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listeners": f"PLAINTEXT://{listener},CONTROLLER://{controller}",
        "advertised.listeners": f"PLAINTEXT://{listener}",
        "log.dirs": setting.folder("kafka") / "logs",
        # A misspelt topic must be an error, not an empty topic.
        "auto.create.topics.enable": "false",
        "num.partitions": 1,
        "default.replication.factor": 1,
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 4,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 4,
        # What a dead owner has left open is aborted soon after its time-out.
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000,
        # How long records wait that come while the transaction before is still being closed.
        "add.partitions.to.txn.retry.backoff.ms": 2,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "share.coordinator.state.topic.num.partitions": 1,
        "group.initial.rebalance.delay.ms": 0,
        # Index files are allocated in full: the default of 10 MiB times partitions adds up.
        "log.index.size.max.bytes": 1 << 20,
        "log.segment.bytes": 64 << 20,
        "log.retention.bytes": 1 << 30,
        "log.cleaner.dedupe.buffer.size": 8 << 20,
        "num.network.threads": 2,
        "num.io.threads": 4,
        "background.threads": 2,
    }
    return "".join(f"{name}={value}\n" for name, value in values.items())


def broker(setting: Setting) -> Component:
    """Return the broker; its storage is formatted before the first start."""
    file = setting.home.config / "kafka.properties"
    options = (f"-Xmx{setting.spec.kafka_heap_mb}m", "-Xms128m", "-XX:+UseSerialGC")
    return Component(
        "kafka",
        (*_java(setting, options), "kafka.Kafka", str(file)),
        kafka_probe(bootstrap_servers(setting)),
        prepare=partial(_prepare, setting),
        grace_seconds=30.0,
    )


def _java(setting: Setting, options: tuple[str, ...]) -> tuple[str, ...]:
    log4j = setting.home.config / "kafka-log4j2.yaml"
    return (
        str(setting.tools.java),
        *options,
        # The first compiler only: the broker starts faster and needs half the memory.
        "-XX:TieredStopAtLevel=1",
        "-Xshare:auto",
        f"-Dlog4j2.configurationFile={log4j}",
        "-cp",
        f"{setting.tools.kafka_jars}/*",
    )


def _prepare(setting: Setting) -> None:
    file = setting.home.config / "kafka.properties"
    file.write_text(properties(setting))
    (setting.home.config / "kafka-log4j2.yaml").write_text(_LOG4J)
    if (setting.folder("kafka") / "logs" / "meta.properties").exists():
        return
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
    arguments = ("format", "--cluster-id", cluster.replace("-", "A"), "--config", str(file))
    command = (*_java(setting, ("-Xmx64m", "-XX:+UseSerialGC")), "kafka.tools.StorageTool")
    with setting.home.log("kafka").open("ab") as log:
        done = subprocess.run([*command, *arguments], stdout=log, stderr=log)
    if done.returncode:
        raise ComponentError("kafka", "its storage can't be formatted", setting.home.log("kafka"))
