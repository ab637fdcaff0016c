"""The command line with a whole application: submit, watch, scale, logs, cancel."""

import errno
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.producers import idempotent
from typer.testing import CliRunner

from streamgraft.cli._app import app
from streamgraft_local import Cluster

pytestmark = pytest.mark.e2e

EXAMPLE = Path(__file__).parents[2] / "examples" / "wordcount" / "app.py"
LINES = 30
RESULT_SECONDS = 120
FOLLOWER_SECONDS = 60


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
    producer = idempotent(cluster.bootstrap_servers)
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


class Follower:
    """A command that runs in a terminal until it is ended, or ends by itself."""

    def __init__(self, process: subprocess.Popen[bytes], terminal: int) -> None:
        self._process = process
        self._terminal = terminal

    def await_text(self, text: str) -> None:
        """Read what it shows until `text` appears."""
        seen = ""
        while text not in seen:
            part = self._read()
            assert part, f"{text} did not appear in: {seen}"
            seen += part

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self._process.send_signal(signal.SIGINT)

    def end(self) -> int:
        """Return its exit code once it has ended by itself."""
        while self._read():
            pass
        return self._process.wait(FOLLOWER_SECONDS)

    def _read(self) -> str:
        """Return what it shows next; nothing once it has ended or is silent for long."""
        if not select.select([self._terminal], [], [], FOLLOWER_SECONDS)[0]:
            return ""
        try:
            return os.read(self._terminal, 4096).decode(errors="replace")
        except OSError as error:
            if error.errno != errno.EIO:  # the terminal of a process that is gone
                raise
            return ""


@contextmanager
def following(*arguments: str) -> Iterator[Follower]:
    """Run `streamgraft` in a terminal of its own; it is ended with the block.

    As in a shell Ctrl-C is heeded, also if these tests run in the background.
    """
    outer, inner = pty.openpty()
    heeded = "from signal import *; signal(SIGINT, default_int_handler)"
    program = f"{heeded}; from streamgraft.cli import main; main()"
    command = (sys.executable, "-c", program, *arguments)
    environment = {**os.environ, "COLUMNS": "200"}
    process = subprocess.Popen(
        command, stdin=inner, stdout=inner, stderr=inner, env=environment, start_new_session=True
    )
    os.close(inner)
    try:
        yield Follower(process, outer)
    finally:
        process.kill()
        process.wait()
        os.close(outer)


def test_life_of_an_application(cluster: Cluster, namespace: str, source: str) -> None:
    """From the module to results and back to nothing."""

    options = ["--kubeconfig", str(cluster.kubeconfig), "-n", namespace]

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, [*options, *arguments])
        assert result.exit_code == 0, result.output
        return result.stdout

    try:
        assert "Job wordcount is healthy" in run("submit", str(EXAMPLE), "--wait")
        produce(cluster, source)
        await_counts(cluster, {"streams": 2 * LINES, "grafted": LINES})

        told = run("scale", "wordcount", "counting", "2", "--wait")
        assert "width 1 to 2" in told
        assert "Width 2 serves" in told
        produce(cluster, source)
        await_counts(cluster, {"streams": 4 * LINES, "grafted": 2 * LINES})

        table = [
            " ".join(line.split()) for line in run("watch", "wordcount", "--once").splitlines()
        ]
        assert any(line.startswith("wordcount Healthy ") for line in table)
        assert any(line.startswith("wordcount-counting 2 2 4 ") for line in table)
        assert run("logs", "wordcount")
        with following(*options, "watch", "wordcount") as watch:
            watch.await_text("wordcount-counting")
            watch.interrupt()
            assert watch.end() == 0
        with following(*options, "logs", "wordcount", "--follow") as logs:
            logs.await_text("wordcount-0-1: ")
            run("cancel", "wordcount")
            assert logs.end() == 0
    finally:
        run("cancel", "wordcount")
    assert "wordcount" not in run("watch", "--once")
