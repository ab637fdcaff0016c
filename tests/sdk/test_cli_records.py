"""`streamgraft records` says what is wrong; tests/e2e/test_tutorials.py has the rest."""

import json
import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest
from confluent_kafka import KafkaError
from typer.testing import CliRunner

from streamgraft import _records
from streamgraft.cli._app import app
from streamgraft_local import Cluster

NOBODY = ["--bootstrap-servers", "127.0.0.1:1"]


MOCK = [*NOBODY, "-X", "bootstrap.servers=", "-X", "test.mock.num.brokers=1"]
"""Kafka's client plays brokers, which have every topic."""


def failure(*arguments: str, given: str | bytes = "") -> str:
    """Return the error of a command."""
    result = CliRunner().invoke(app, ["records", *arguments], input=given)
    assert result.exit_code == 1, result.output
    return result.output


@pytest.mark.parametrize(
    ("given", "options", "wanted"),
    [
        ("[1]\n", [], "line 1 is not a JSON object"),
        ("\n{\n", [], "line 2 is not a JSON object"),
        ('{"a": 1}\n', ["--key", "b"], "line 1 has no 'b'"),
        (b'{"a": 1}\n{"a": "\xff"}\n', [], "line 2 is not UTF-8"),
    ],
)
def test_lines_that_are_no_records(given: str | bytes, options: list[str], wanted: str) -> None:
    assert wanted in failure("write", "t", *MOCK, *options, given=given)


def test_a_topic_that_is_not_there_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka's client would wait for it, and then say that the brokers do not answer."""

    class Producer:
        def __init__(self, _: object) -> None: ...

        def list_topics(self, topic: str, _: float) -> SimpleNamespace:
            error = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
            return SimpleNamespace(topics={topic: SimpleNamespace(error=error)})

    monkeypatch.setattr(_records, "Producer", Producer)
    assert "there is no topic typo: --create N" in failure("write", "typo", *NOBODY, given="{}")


def test_a_cluster_that_is_named_has_its_own_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the one that runs here."""
    monkeypatch.setattr("streamgraft.cli._records.running_kafka", lambda: "127.0.0.1:1")
    result = CliRunner().invoke(app, ["--context", "prod", "records", "read", "t"])
    assert result.exit_code == 1
    assert "say where that cluster's Kafka is: --bootstrap-servers" in result.output


def test_properties_are_pairs() -> None:
    assert "security.protocol is not a property" in failure(
        "read", "t", *NOBODY, "-X", "security.protocol"
    )


def test_brokers_must_be_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMGRAFT_HOME", str(tmp_path))
    assert "--bootstrap-servers HOST:PORT" in failure("read", "t")


def test_brokers_that_do_not_answer() -> None:
    assert "topic t can't be read" in failure("read", "t", *NOBODY)


class SlowConsumer:
    """Kafka's client, of a topic that gets a record now and then. Time passes as it is asked."""

    pauses: ClassVar[list[float]]
    now: ClassVar[float] = 0.0

    def __init__(self, _: object) -> None:
        self._left = list(self.pauses)
        self._next = self.monotonic() + self._left[0]

    @classmethod
    def monotonic(cls) -> float:
        return cls.now

    def list_topics(self, topic: str, _: float) -> SimpleNamespace:
        return SimpleNamespace(topics={topic: SimpleNamespace(error=None, partitions=[0])})

    def assign(self, _: object) -> None: ...

    def close(self) -> None: ...

    def poll(self, _: float) -> SimpleNamespace | None:
        type(self).now += 0.1
        if self.monotonic() < self._next:
            return None
        self._left.pop(0)
        self._next = self.monotonic() + (self._left or [0.0])[0]
        return SimpleNamespace(error=lambda: None, value=lambda: b'{"a": 1}')


def test_who_waits_for_records_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """On stderr, once for each that takes long."""
    monkeypatch.setattr(_records, "Consumer", SlowConsumer)
    monkeypatch.setattr(_records, "time", SlowConsumer)
    monkeypatch.setattr(SlowConsumer, "pauses", [0.0, 6.0, 0.0, 6.0], raising=False)
    result = CliRunner().invoke(app, ["records", "read", "t", *NOBODY, "--count", "4"])
    assert result.stdout.splitlines() == ['{"a": 1}'] * 4
    said = "{} of 4 records so far; waiting up to a minute for the next one"
    assert result.stderr.splitlines() == [said.format(1), said.format(3)]


@pytest.mark.integration
def test_records_go_in_and_out(cluster: Cluster, tmp_path: Path) -> None:
    """Reading ends at the present end, also of partitions without records, and at a count."""
    topic = f"records-{uuid.uuid4().hex[:8]}"
    servers = ["--bootstrap-servers", cluster.bootstrap_servers]
    lines = [json.dumps({"user": f"u{number}"}) for number in range(3)]
    file = tmp_path / "rows.json"
    file.write_text("\n".join(lines))

    def succeed(*arguments: str) -> list[str]:
        result = CliRunner().invoke(app, ["records", *arguments, *servers])
        assert result.exit_code == 0, result.output
        return result.stdout.splitlines()

    assert "can't be read" in failure("read", topic, *servers)
    assert "there is no topic" in failure("write", topic, str(file), *servers)
    written = succeed("write", topic, str(file), "--key", "user", "--create", "8")
    assert written == [f"3 records written to {topic}"]
    assert sorted(succeed("read", topic)) == lines
    assert len(succeed("read", topic, "--count", "2")) == 2
    succeed("write", topic, str(file), "--create", "8")
    assert sorted(succeed("read", topic)) == sorted([*lines, *lines])
