"""Topics of Avro records, with and without a registry, and of Protocol Buffers, on real Spark and
Kafka."""

import base64
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.common.apicurio import apicurio
from tests.common.schema_registry import FakeRegistry, registry
from tests.common.test_encodings import MESSAGE, NEWER, SCHEMA, TEXT, descriptors
from tests.pe_runtime.one_driver import Job, make_topic, rows
from tests.producers import idempotent

import streamgraft as sg
from streamgraft_common import names
from streamgraft_common.encodings.codec import Codec
from streamgraft_common.encodings.codecs import codec_of
from streamgraft_common.encodings.registry import unframed
from streamgraft_local import Cluster, pki
from streamgraft_pe_runtime.protocol import failures
from streamgraft_pe_runtime.settings import RESTRICTED_PROPERTIES

pytestmark = pytest.mark.integration

COLUMNS = """id bigint, name string, price decimal(9, 2), at timestamp, raw binary,
    tags array<string>, counts map<string, int>, place struct<x: double>"""
MESSAGE_COLUMNS = """id bigint, raw binary, prices array<double>, kind string, at timestamp,
    items array<struct<name: string>>, first struct<name: string>"""
Format = sg.Avro | sg.Protobuf


def copies(format: Format, columns: str, topic: str) -> sg.Application:
    """Return an application that reads a topic and writes it again, beside a JSON one."""
    app = sg.Application("copies")
    source = app.kafka_source("orders", topic=topic, schema=columns, format=format)

    @app.operator(inputs=source)
    def first(orders: DataFrame) -> DataFrame:
        return orders.where("id > 0")

    app.kafka_sink("copy", input=first, topic=f"{topic}-copy", format=format)
    app.kafka_sink("json", input=first, topic=f"{topic}-json")
    return app


@pytest.fixture
def run(session: SparkSession, cluster: Cluster, tmp_path: Path) -> Iterator[Callable[..., Job]]:
    """Runs an application over some values of its topic; stopped at the end."""
    jobs: list[Job] = []

    def start(app: sg.Application, topic: str, values: list[bytes]) -> Job:
        producer = idempotent(cluster.bootstrap_servers)
        for value in values:
            producer.produce(topic, value, partition=0)
        assert producer.flush(30) == 0
        jobs.append(Job(app, session, cluster, tmp_path))
        return jobs[-1]

    yield start
    for job in jobs:
        for item in job.queries.values():
            item.stop(30)


def numbered(text: str, count: int) -> list[dict[str, Any]]:
    return [{**json.loads(text), "id": number + 1} for number in range(count)]


def compare(job: Job, topic: str, codec: Codec, expected: list[dict[str, Any]]) -> None:
    """The copy has what was written, and so has the JSON topic beside it."""
    copied = [codec.decode(message.value()) for message in job.read(f"{topic}-copy", len(expected))]
    assert copied == expected
    assert [row["id"] for row in rows(job.read(f"{topic}-json", len(expected)))] == [
        row["id"] for row in expected
    ]


@pytest.fixture
def guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRegistry]:
    """A registry by https with a password, and what a PE is told to show it."""
    signer = pki.authority("ca")
    mounted = tmp_path / "secret"
    mounted.mkdir()
    signer.save(tmp_path, "ca")
    pki.issue(signer, "registry", hosts=["127.0.0.1"]).save(tmp_path, "tls")
    (mounted / "registry-ca.crt").write_bytes((tmp_path / "ca.crt").read_bytes())
    (mounted / "registry-user").write_text("key")
    (mounted / "registry-password").write_text("s3cr3t")
    monkeypatch.setenv(RESTRICTED_PROPERTIES, str(mounted))
    with registry(tmp_path) as server:
        server.wanted = f"Basic {base64.b64encode(b'key:s3cr3t').decode()}"
        yield server


@pytest.mark.parametrize("registered", [False, True])
def test_avro(
    run: Callable[..., Job], cluster: Cluster, guarded: FakeRegistry, registered: bool
) -> None:
    """What is no such record is set aside with the reason; others are copied with every type.

    The registry asks for a password, as those of production do.
    """
    topic = make_topic(cluster)
    server = guarded
    avro = sg.Avro(json.dumps(SCHEMA), registry=server.url if registered else None)
    codec = codec_of(avro.encoding(), topic, Path(os.environ[RESTRICTED_PROPERTIES]))
    wanted = numbered(TEXT, 20)
    values = [b"\xff", *(codec.encode(json.dumps(row)) for row in wanted), b"{}"]
    job = run(copies(avro, COLUMNS, topic), topic, values)
    compare(job, topic, codec, wanted)
    letters = job.read(names.dead_letter_topic("default", job.pes[0].job), 2)
    assert [letter.value() for letter in letters] == [b"\xff", b"{}"]
    if registered:
        assert {*server.shown} == {server.wanted}
        assert server.subjects.keys() == {f"{topic}-value", f"{topic}-copy-value"}
        reasons = {dict(letter.headers())["streamgraft.error"] for letter in letters}
        assert reasons == {b"it does not begin with the id of a schema"}


def test_avro_with_a_real_registry(
    run: Callable[..., Job], cluster: Cluster, tmp_path: Path
) -> None:
    """Records of a writer that knows a newer schema are copied with ours."""
    topic = make_topic(cluster)
    with apicurio(tmp_path) as url:
        avro = sg.Avro(json.dumps(SCHEMA), registry=url)
        codec = codec_of(avro.encoding(), topic)
        newer = codec_of(sg.Avro(json.dumps(NEWER), registry=url).encoding(), topic)
        wanted = numbered(TEXT, 20)
        values = [
            *(codec.encode(json.dumps(row)) for row in wanted[:10]),
            *(newer.encode(json.dumps({**row, "more": 1})) for row in wanted[10:]),
        ]
        assert len({unframed(value)[0] for value in values}) == 2
        compare(run(copies(avro, COLUMNS, topic), topic, values), topic, codec, wanted)


def test_a_wrong_password_is_told(
    run: Callable[..., Job], cluster: Cluster, guarded: FakeRegistry
) -> None:
    """The PE's message says which keys of which Secret, and neither it nor Spark's error has one.
    The record is not set aside: with the right password it is read."""
    mounted = Path(os.environ[RESTRICTED_PROPERTIES])
    topic = make_topic(cluster)
    avro = sg.Avro(json.dumps(SCHEMA), registry=guarded.url)
    codec = codec_of(avro.encoding(), topic, mounted)
    value = codec.encode(TEXT)
    (mounted / "registry-password").write_text("0ld-s3cr3t")
    job = run(copies(avro, COLUMNS, topic), topic, [value])
    deadline = time.monotonic() + 60
    while not (found := next(filter(None, (q.failure() for q in job.queries.values())), "")):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    said = failures.summary(found)
    assert "401 the registry does not accept registry-user and registry-password" in said
    assert "the Secret that processingElement.restrictedPropertiesSecret names" in said
    shown = str(guarded.shown[-1]).removeprefix("Basic ")
    assert shown not in found
    assert "0ld-s3cr3t" not in found
    (mounted / "registry-password").write_text("s3cr3t")
    job.start()
    compare(job, topic, codec, [json.loads(TEXT)])


def test_null_is_no_reason_for_a_default(run: Callable[..., Job], cluster: Cluster) -> None:
    topic = make_topic(cluster)
    color = {"name": "color", "type": ["string", "null"], "default": "red"}
    fields = [{"name": "id", "type": "long"}, color]
    avro = sg.Avro(json.dumps({"type": "record", "name": "Car", "fields": fields}))
    codec = codec_of(avro.encoding(), topic)
    wanted = [{"id": number + 1, "color": color} for number, color in enumerate(("blue", None))]
    values = [codec.encode(json.dumps(row)) for row in wanted]
    job = run(copies(avro, "id bigint, color string", topic), topic, values)
    compare(job, topic, codec, wanted)


def test_protobuf(run: Callable[..., Job], cluster: Cluster) -> None:
    """The same for messages."""
    topic = make_topic(cluster)
    protobuf = sg.Protobuf(descriptors(), "shop.Order")
    codec = codec_of(protobuf.encoding(), topic)
    wanted = numbered(json.dumps(MESSAGE), 20)
    values = [b"\xff", *(codec.encode(json.dumps(row)) for row in wanted)]
    job = run(copies(protobuf, MESSAGE_COLUMNS, topic), topic, values)
    compare(job, topic, codec, wanted)
    (letter,) = job.read(names.dead_letter_topic("default", job.pes[0].job), 1)
    assert dict(letter.headers())["streamgraft.error"].startswith(b"not such a message")
