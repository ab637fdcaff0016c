"""Savepoints on real parts: taken, listed, refused where they do not fit, restored, deleted."""

import json
import time
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from typer.testing import CliRunner

from streamgraft.cli._app import app
from streamgraft_local import Cluster

pytestmark = pytest.mark.integration

KEYS = 40
APPLICATION = """
import streamgraft as sg

app = sg.Application("counts", trigger_seconds=0.3)
records = app.kafka_source("records", topic="{source}", schema="key string")

with app.parallel("work", key=["key"], width=1, max_width={groups}):

    @app.operator(inputs=records, output_mode="update")
    def {operator}(rows):
        return rows.groupBy("key").count()

app.kafka_sink("results", input={operator}, topic="{sink}", key=["key"])
"""


class Streams:
    """The topics of a test."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.servers = cluster.bootstrap_servers
        self.source = f"{namespace}-in"
        self._producer = Producer({"bootstrap.servers": self.servers})
        self._sent: Counter[str] = Counter()
        admin = AdminClient({"bootstrap.servers": self.servers})
        for created in admin.create_topics([NewTopic(self.source, 1, 1)]).values():
            created.result()

    def send(self, count: int) -> None:
        """Send records, dealt out to all keys."""
        for number in range(count):
            key = f"k{number % KEYS}"
            self._producer.produce(self.source, json.dumps({"key": key}))
            self._sent[key] += 1
        assert self._producer.flush(30) == 0

    def counted(self, sink: str) -> list[tuple[str, int]]:
        """Wait until a sink has the final count of each key; return all that it has."""
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": "test"})
        consumer.assign([TopicPartition(sink, 0, 0)])
        found: list[tuple[str, int]] = []
        deadline = time.monotonic() + 120
        try:
            while dict(found) != self._sent:
                assert time.monotonic() < deadline, (sink, dict(found), self._sent)
                if (message := consumer.poll(0.2)) and not message.error():
                    row = json.loads(message.value() or b"{}")
                    found.append((row["key"], row["count"]))
        finally:
            consumer.close()
        return found


@pytest.fixture
def streams(cluster: Cluster, namespace: str) -> Streams:
    """The topics of the test."""
    return Streams(cluster, namespace)


def written(folder: Path, streams: Streams, name: str, **changes: object) -> Path:
    """Write an application; its sink has its name."""
    settings = {"source": streams.source, "groups": 4, "operator": "counted"} | changes
    file = folder / f"{name}.py"
    file.write_text(APPLICATION.format(sink=f"{streams.source}-{name}", **settings))
    return file


def test_savepoint_is_taken_refused_where_it_does_not_fit_restored_and_deleted(
    cluster: Cluster, namespace: str, streams: Streams, tmp_path: Path
) -> None:
    """Versions go on from the saved state, also with other key groups: the batch result."""
    options = ["--kubeconfig", str(cluster.kubeconfig), "-n", namespace]

    def run(*arguments: str | Path, code: int = 0) -> str:
        result = CliRunner().invoke(app, [*options, *map(str, arguments)])
        assert result.exit_code == code, result.output
        return result.output

    run("submit", written(tmp_path, streams, "counts"), "--wait")
    streams.send(200)
    streams.counted(f"{streams.source}-counts")
    assert "complete: 6 shards" in run("savepoint", "create", "counts", "--name", "first")
    assert "first" in run("savepoint", "list")
    assert "already" in run("savepoint", "create", "counts", "--name", "first", code=1)
    other = written(tmp_path, streams, "renamed", operator="sums")
    refused = run("savepoint", "restore", "first", other, "--as", "fork", code=1)
    assert "counted" in refused
    taken = run("savepoint", "restore", "first", "--as", "counts", code=1)
    assert "there is a job counts already" in taken
    assert "no savepoint second" in run("savepoint", "restore", "second", code=1)

    streams.send(100)
    wider = written(tmp_path, streams, "wider", groups=8)
    told = run("savepoint", "restore", "first", wider, "--as", "fork", "--wait")
    assert "4 key groups" in told
    assert "dealt out to 8" in told
    fork = streams.counted(f"{streams.source}-wider")
    assert min(count for _, count in fork) > 200 // KEYS  # what was counted before isn't again

    same = written(tmp_path, streams, "same")
    run("savepoint", "restore", "first", same, "--wait")
    assert min(count for _, count in streams.counted(f"{streams.source}-same")) > 200 // KEYS
    run("savepoint", "delete", "first")
    assert not list(cluster.checkpoints.glob("*/savepoints/first"))
