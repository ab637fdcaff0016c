"""The command line with a whole application: submit, watch, scale, logs, cancel."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from typer.testing import CliRunner

from streamgraft.cli._app import app
from streamgraft_local import Cluster

pytestmark = pytest.mark.e2e

EXAMPLE = Path(__file__).parents[2] / "examples" / "wordcount" / "app.py"
LINES = 30
RESULT_SECONDS = 120


@pytest.fixture
def source(cluster: Cluster) -> Iterator[str]:
    """The topic that the example reads."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic("lines", 1, 1)])["lines"].result(30)
    yield "lines"
    for deleted in admin.delete_topics(["lines", "frequent-words"]).values():
        deleted.result(30)


def produce(cluster: Cluster, topic: str) -> None:
    """Write lines in which two words are frequent and each line's own is not."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for number in range(LINES):
        text = {"text": f"streams streams grafted word{number}"}
        producer.produce(topic, json.dumps(text).encode())
    assert producer.flush(30) == 0


def await_counts(cluster: Cluster, wanted: dict[str, int]) -> None:
    """Read the sink's topic until it has the wanted counts."""
    counts: dict[str, int] = {}
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "test-wordcount",
            "auto.offset.reset": "earliest",
            "topic.metadata.refresh.interval.ms": "500",
        }
    )
    consumer.subscribe(["frequent-words"])
    deadline = time.monotonic() + RESULT_SECONDS
    try:
        while counts != wanted:
            assert time.monotonic() < deadline, counts
            message = consumer.poll(0.5)
            if message is None or message.error():
                continue
            row = json.loads(message.value() or b"")
            assert message.key() == row["word"].encode()
            counts[row["word"]] = row["count"]
    finally:
        consumer.close()


def test_life_of_an_application(cluster: Cluster, namespace: str, source: str) -> None:
    """From the module to results and back to nothing."""

    def run(*arguments: str) -> str:
        options = ["--kubeconfig", str(cluster.kubeconfig), "-n", namespace]
        result = CliRunner().invoke(app, [*options, *arguments])
        assert result.exit_code == 0, result.output
        return result.stdout

    try:
        assert "Job wordcount is healthy" in run("submit", str(EXAMPLE), "--wait")
        produce(cluster, source)
        await_counts(cluster, {"streams": 2 * LINES, "grafted": LINES})

        assert "Width 2 serves" in run("scale", "wordcount", "counting", "2", "--wait")
        produce(cluster, source)
        await_counts(cluster, {"streams": 4 * LINES, "grafted": 2 * LINES})

        table = [
            " ".join(line.split()) for line in run("watch", "wordcount", "--once").splitlines()
        ]
        assert any(line.startswith("wordcount Healthy ") for line in table)
        assert any(line.startswith("wordcount-counting 2 2 4 ") for line in table)
        assert run("logs", "wordcount")
    finally:
        run("cancel", "wordcount")
    assert "wordcount" not in run("watch", "--once")
