"""Records that a source can't read: set aside, left out, or a failure; never rows of nulls."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.pe_runtime.one_driver import Job, make_topic, rows
from tests.producers import idempotent

import streamgraft as sg
from streamgraft_common import names
from streamgraft_local import Cluster
from streamgraft_pe_runtime import malformed

pytestmark = pytest.mark.integration

SCHEMA = "key string, `the n` bigint"
GOOD = [json.dumps({"key": f"k{n}", "the n": n}) for n in range(3)]
ODD = ['{"key": "no n"}', '{"key": "more", "the n": 7, "m": [1]}', '{"the n": null}']
"""Not as expected, and yet objects of the schema."""
LARGE = {"message.max.bytes": "2000000"}
LARGEST = 1_048_350
"""Brokers take 1,048,588 bytes, what Kafka adds to a record included."""
BAD = {
    "not json": "Unrecognized token 'not'",
    "": "not a JSON object",
    "[1, 2]": "not a JSON object",
    "null": "root field",
    "17": "not a JSON object",
    '{"key": "cut off", "the': "end-of-input",
    '{"key": "typed", "the n": "many"}': "'the n' and the value many",
}
"""Malformed values, and what the reason must name."""


@pytest.fixture
def topic(cluster: Cluster) -> str:
    """A topic with good, odd and bad values in turn, and a record without a value."""
    name = make_topic(cluster)
    producer = idempotent(cluster.bootstrap_servers)
    for number, value in enumerate([*BAD, *GOOD, *ODD]):
        producer.produce(name, value, f"r{number}", partition=0)
    producer.produce(name, None, "deleted", partition=0)
    assert producer.flush(30) == 0
    return name


@pytest.fixture
def run(session: SparkSession, cluster: Cluster, tmp_path: Path) -> Iterator[Callable[..., Job]]:
    """Runs an application that copies a topic; stopped at the end."""
    jobs: list[Job] = []

    def start(
        topic: str,
        *,
        twice: bool = False,
        real_time: bool = False,
        schema: str = SCHEMA,
        **how: Any,
    ) -> Job:
        app = sg.Application("copies")
        source = app.kafka_source("numbers", topic=topic, schema=schema, **how)

        @app.operator(inputs=source, real_time=real_time)
        def first(numbers: DataFrame) -> DataFrame:
            return numbers.withColumnRenamed("the n", "n")

        app.kafka_sink("copy", input=first, topic=f"{topic}-copy")
        if twice:

            @app.operator(inputs=source)
            def second(numbers: DataFrame) -> DataFrame:
                return numbers.distinct()

            app.kafka_sink("again", input=second, topic=f"{topic}-again")
        jobs.append(Job(app, session, cluster, tmp_path))
        return jobs[-1]

    yield start
    for job in jobs:
        for item in job.queries.values():
            item.stop(30)


def expected() -> list[tuple[str | None, int | None]]:
    return [(row.get("key"), row.get("the n")) for row in map(json.loads, [*GOOD, *ODD])]


@pytest.mark.parametrize("real_time", [False, True])
def test_a_record_without_what_is_not_null_is_malformed(
    run: Callable[..., Job], topic: str, real_time: bool
) -> None:
    """As of a field that was renamed upstream: it would be nulls from then on."""
    schema = "key string, `the n` bigint NOT NULL"
    job = run(topic, schema=schema, real_time=real_time)
    known = [row for row in expected() if row[1] is not None]
    found = rows(job.read(f"{topic}-copy", len(known)))
    assert [(row.get("key"), row["n"]) for row in found] == known
    without = [text for text in ODD if json.loads(text).get("the n") is None]
    letters = job.read(names.dead_letter_topic("default", job.pes[0].job), len(BAD) + len(without))
    assert [letter.value().decode() for letter in letters] == [*BAD, *without]
    errors = [dict(letter.headers())["streamgraft.error"].decode() for letter in letters]
    assert ["NOT NULL" in error for error in errors] == [False] * len(BAD) + [True] * len(without)
    assert "'the n' is NOT NULL" in errors[-1]


def copied(job: Job, topic: str) -> list[tuple[str | None, int | None]]:
    found = rows(job.read(f"{topic}-copy", len(expected())))
    return [(row.get("key"), row.get("n")) for row in found]


@pytest.mark.parametrize("real_time", [False, True])
def test_dead_letters_have_the_record_and_why(
    run: Callable[..., Job], session: SparkSession, topic: str, real_time: bool
) -> None:
    """By default; each once, although two branches read the source."""
    job = run(topic, twice=not real_time, real_time=real_time)
    assert copied(job, topic) == expected()
    letters = job.read(names.dead_letter_topic("default", job.pes[0].job), len(BAD))
    assert [letter.value().decode() for letter in letters] == list(BAD)
    assert [letter.key().decode() for letter in letters] == [f"r{n}" for n in range(len(BAD))]
    for number, (letter, reason) in enumerate(zip(letters, BAD.values(), strict=True)):
        headers = {name: value.decode() for name, value in letter.headers()}
        error = headers.pop("streamgraft.error")
        assert reason in error
        assert headers == {
            "streamgraft.operator": "numbers",
            "streamgraft.topic": topic,
            "streamgraft.partition": "0",
            "streamgraft.offset": str(number),
        }
    assert malformed.counts(session)["numbers", topic] == len(BAD)
    assert job.size(names.dead_letter_topic("default", job.pes[0].job)) == len(BAD)


def test_a_record_too_large_for_the_dead_letters_stops_nothing(
    run: Callable[..., Job], cluster: Cluster, session: SparkSession
) -> None:
    """With its headers it is larger than in its own topic; the letter has its place, and why."""
    topic = make_topic(cluster)
    producer = idempotent(cluster.bootstrap_servers, LARGE)
    large = json.dumps({"key": "k" * LARGEST, "the n": "many"})
    for value in (GOOD[0], large, GOOD[1]):
        producer.produce(topic, value, "r", partition=0)
    assert producer.flush(30) == 0
    job = run(topic)
    assert [row["n"] for row in rows(job.read(f"{topic}-copy", 2))] == [0, 1]
    (letter,) = job.read(names.dead_letter_topic("default", job.pes[0].job), 1)
    headers = {name: value.decode() for name, value in letter.headers()}
    assert letter.value() is None
    assert headers["streamgraft.offset"] == "1"
    assert "the value many" in headers["streamgraft.error"]
    assert f"its {len(large)} bytes are more" in headers["streamgraft.error"]
    assert malformed.counts(session)["numbers", topic] == 1


def test_a_key_too_large_for_the_dead_letters_stops_nothing(
    run: Callable[..., Job], cluster: Cluster
) -> None:
    """The letter is without it, too."""
    topic = make_topic(cluster)
    producer = idempotent(cluster.bootstrap_servers, LARGE)
    for value, key in ((GOOD[0], "r"), ("not json", "k" * LARGEST), (GOOD[1], "r")):
        producer.produce(topic, value, key, partition=0)
    assert producer.flush(30) == 0
    job = run(topic)
    assert [row["n"] for row in rows(job.read(f"{topic}-copy", 2))] == [0, 1]
    (letter,) = job.read(names.dead_letter_topic("default", job.pes[0].job), 1)
    assert (letter.key(), letter.value()) == (None, None)
    error = dict(letter.headers())["streamgraft.error"].decode()
    assert "Unrecognized token 'not'" in error
    assert "its 8 bytes are more" in error
    assert f"its key's {LARGEST} bytes are more" in error


NARROW = "t tinyint, at timestamp, p struct<t: array<tinyint>, at: map<string, timestamp>>"
FITTING = [
    {"t": -128, "at": "0001-01-01T00:00:00.000000Z"},
    {"t": 127, "at": "9999-12-31T23:59:59.000000Z"},
    {"p": {"t": [1], "at": {"x": "2023-11-14T22:13:20.000000Z"}}},
]
SECONDS = {"at": 1_700_000_000}
BEYOND = {
    "t": ({"t": 128}, {"t": -129}, {"t": 255}),
    "at": ({"at": 1_700_000_000_000}, {"at": 253_402_300_800}, {"at": -62_135_596_801}),
    "p": ({"p": {"t": [1, 200]}}, {"p": {"at": {"x": 1_700_000_000_000}}}),
}


def test_numbers_that_spark_takes_for_others_are_malformed(
    run: Callable[..., Job], cluster: Cluster
) -> None:
    """A tinyint that would wrap, and milliseconds in a timestamp; also within other values."""
    topic = make_topic(cluster)
    producer = idempotent(cluster.bootstrap_servers)
    beyond = [row for found in BEYOND.values() for row in found]
    for row in (*beyond, *FITTING, SECONDS):
        producer.produce(topic, json.dumps(row), partition=0)
    assert producer.flush(30) == 0
    job = run(topic, schema=NARROW)
    expected = [*FITTING, {"at": "2023-11-14T22:13:20.000000Z"}]
    assert rows(job.read(f"{topic}-copy", len(expected))) == expected
    letters = job.read(names.dead_letter_topic("default", job.pes[0].job), len(beyond))
    assert [json.loads(letter.value()) for letter in letters] == beyond
    columns = [name for name, found in BEYOND.items() for _ in found]
    for letter, column in zip(letters, columns, strict=True):
        error = dict(letter.headers())["streamgraft.error"].decode()
        assert error.startswith(f"'{column}' has a value out of its type's range")


def test_skipped_records_are_counted(
    run: Callable[..., Job], session: SparkSession, topic: str
) -> None:
    """They are nowhere; no topic for dead letters is planned."""
    job = run(topic, malformed="skip")
    assert copied(job, topic) == expected()
    assert malformed.counts(session)["numbers", topic] == len(BAD)
    assert [port.dead_letters for port in job.pes[0].inputs] == [None]


def test_a_source_may_fail_instead(run: Callable[..., Job], topic: str) -> None:
    """The query says where the record is, why, and what to do; nothing is written."""
    job = run(topic, malformed="fail")
    (query,) = job.queries.values()
    query._thread().join(60_000)
    failure = query.failure()
    assert failure
    assert f"record 0 of {topic}/0 is malformed: Unrecognized token 'not'" in failure
    assert 'malformed="dead_letter" or "skip"' in failure
    assert job.size(f"{topic}-copy") == 0


def test_another_version_of_the_source_changes_nothing(
    run: Callable[..., Job], cluster: Cluster
) -> None:
    """A query that runs treats them as it did: a plan may be made and then be refused."""
    name = make_topic(cluster)
    first = run(name, malformed="skip")
    run(name, malformed="fail")
    producer = idempotent(cluster.bootstrap_servers)
    for value in (*BAD, *GOOD, *ODD):
        producer.produce(name, value, partition=0)
    assert producer.flush(30) == 0
    assert copied(first, name) == expected()
