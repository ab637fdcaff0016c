"""Avro, with and without a registry, and Protocol Buffers: values → JSON objects → values."""

import io
import json
import time
from contextlib import suppress
from typing import Any

import fastavro
import pytest
from google.protobuf import (
    any_pb2,
    descriptor_pb2,
    source_context_pb2,
    timestamp_pb2,
    type_pb2,
)
from hypothesis import example, given
from hypothesis import strategies as st
from tests.common.schema_registry import registry

from streamgraft_common.encodings.avro import AvroCodec
from streamgraft_common.encodings.codec import Undecodable, Unencodable
from streamgraft_common.encodings.protobuf import ProtobufCodec
from streamgraft_common.encodings.registry import LATE_SECONDS, Registry, RegistryError, framed

PLACE = {"name": "x", "type": "double"}
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"], "default": None},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        },
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "raw", "type": "bytes"},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "counts", "type": {"type": "map", "values": "int"}},
        {
            "name": "place",
            "type": [
                "null",
                {"type": "record", "name": "P", "fields": [{"name": "x", "type": "double"}]},
            ],
            "default": None,
        },
    ],
}
ROW = {
    "id": 2**53 + 1,
    "name": "é",
    "price": "12.30",
    "at": "2026-01-02T03:04:05.678901+00:00",
    "raw": "AAE=",
    "tags": ["a", "b"],
    "counts": {"x": 1},
    "place": {"x": 1.5},
}
TEXT = json.dumps(ROW)
NEWER = {**SCHEMA, "fields": [*SCHEMA["fields"], {"name": "more", "type": "int", "default": 7}]}


def test_avro_goes_there_and_back() -> None:
    """In the forms of JSON that Spark reads and writes."""
    codec = AvroCodec(json.dumps(SCHEMA))
    assert codec.decode(codec.encode(TEXT)) == ROW
    sparse = {name: value for name, value in ROW.items() if name not in ("name", "place")}
    assert codec.decode(codec.encode(json.dumps(sparse))) == {**sparse, "name": None, "place": None}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"id": "many"}, "many"),
        ({"other": 1}, "the schema has no field other"),
        ({"price": None}, "price"),
    ],
)
def test_rows_without_a_place_are_refused(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(Unencodable, match=problem):
        AvroCodec(json.dumps(SCHEMA)).encode(json.dumps({**ROW, **change}))


@given(st.binary(max_size=60))
def test_any_bytes_are_a_record_or_refused(value: bytes) -> None:
    codec = AvroCodec(json.dumps(SCHEMA))
    with suppress(Undecodable):
        json.dumps(codec.decode(value))


@pytest.mark.parametrize(
    ("kind", "logical"),
    [
        ("int", "date"),
        ("int", "time-millis"),
        ("long", "time-micros"),
        ("long", "timestamp-millis"),
        ("long", "timestamp-micros"),
        ("long", "local-timestamp-millis"),
        ("long", "local-timestamp-micros"),
    ],
)
@given(st.integers(-(2**63), 2**63 - 1))
@example(2**62)
def test_any_number_is_a_time_or_refused(kind: str, logical: str, number: int) -> None:
    """Python's dates and times have fewer values than Avro's."""
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, {"type": "long"}, number)
    field = {"name": "at", "type": {"type": kind, "logicalType": logical}}
    codec = AvroCodec(json.dumps({"type": "record", "name": "Timed", "fields": [field]}))
    with suppress(Undecodable):
        json.dumps(codec.decode(stream.getvalue()))


LIST = {"type": "record", "name": "ns.Link", "fields": [{"name": "id", "type": "long"}]}


def linked(kind: Any) -> dict[str, Any]:
    """Return a schema of records that contain others of this type."""
    return {**LIST, "fields": [*LIST["fields"], {"name": "next", "type": kind}]}


@pytest.mark.parametrize(
    "kind",
    [
        ["null", "Link"],
        ["null", "ns.Link"],
        {"type": "array", "items": "Link"},
        {"type": "map", "values": "Link"},
        {"type": "record", "name": "B", "fields": [{"name": "a", "type": ["null", "Link"]}]},
    ],
)
def test_types_that_contain_themselves_are_refused(kind: Any) -> None:
    """fastavro follows them on the stack: 100 kB that are nested deeply ended the process."""
    with pytest.raises(ValueError, match="contains itself, which no type of Spark can"):
        AvroCodec(json.dumps(linked(kind)))
    with registry() as server:
        server.schemas[42] = json.dumps(linked(kind))
        codec = AvroCodec(json.dumps(LIST), Registry(server.url))
        with pytest.raises(Undecodable, match="contains itself"):
            codec.decode(framed(42, b"\x02" * 1_000_000))


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        ("long", 0),
        ("boolean", False),
        ("string", ""),
        ({"type": "array", "items": "long"}, []),
        (["long"], 0),
    ],
)
def test_null_is_written_as_null_or_not_at_all(kind: Any, default: Any) -> None:
    """A default is for what is missing."""
    optional = {"name": "color", "type": ["string", "null"], "default": "red"}
    codec = AvroCodec(json.dumps({**LIST, "fields": [*LIST["fields"], optional]}))
    assert codec.decode(codec.encode('{"id": 1, "color": null}')) == {"id": 1, "color": None}
    assert codec.decode(codec.encode('{"id": 1}')) == {"id": 1, "color": "red"}
    needed = {"name": "n", "type": kind, "default": default}
    strict = AvroCodec(json.dumps({**LIST, "fields": [*LIST["fields"], needed]}))
    with pytest.raises(Unencodable, match="null where the schema has"):
        strict.encode('{"id": 1, "n": null}')


EMPTY = {"type": "record", "name": "Empty", "fields": [{"name": "nothing", "type": "null"}]}


@pytest.mark.parametrize(
    "fields",
    [
        [{"type": "array", "items": "null"}],
        [EMPTY, {"type": "array", "items": "Empty"}],
        [["null", {"type": "map", "values": {"type": "array", "items": {**EMPTY, "fields": []}}}]],
        [{"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}}],
    ],
)
def test_arrays_of_items_without_bytes_are_refused(fields: list[Any]) -> None:
    """Ten bytes may be an array of 2^63 such items."""
    more = [{"name": f"f{number}", "type": kind} for number, kind in enumerate(fields)]
    hostile = {**LIST, "fields": [*LIST["fields"], *more]}
    with pytest.raises(ValueError, match="an array's items take no bytes"):
        AvroCodec(json.dumps(hostile))
    with registry() as server:
        server.schemas[42] = json.dumps(hostile)
        codec = AvroCodec(json.dumps(LIST), Registry(server.url))
        with pytest.raises(Undecodable, match="an array's items take no bytes"):
            codec.decode(framed(42, b"\x02" + b"\xfe" + b"\xff" * 8 + b"\x01" + b"\x00"))


def test_items_with_bytes_are_read() -> None:
    """Whatever is null in them: which type of a union it is takes a byte."""
    optional = {"type": "array", "items": ["null", "long"]}
    kind = {**LIST, "fields": [{"name": "ids", "type": optional}, {"name": "e", "type": EMPTY}]}
    codec = AvroCodec(json.dumps(kind))
    row = {"ids": [1, None], "e": {"nothing": None}}
    assert codec.decode(codec.encode(json.dumps(row))) == row


def test_a_type_that_is_used_twice_is_none_of_them() -> None:
    place = {"type": "record", "name": "Place", "fields": [{"name": "x", "type": "long"}]}
    fields = [{"name": "here", "type": place}, {"name": "there", "type": "Place"}]
    codec = AvroCodec(json.dumps({"type": "record", "name": "Way", "fields": fields}))
    row = {"here": {"x": 1}, "there": {"x": 2}}
    assert codec.decode(codec.encode(json.dumps(row))) == row


def test_a_record_of_a_newer_schema_is_read_as_ours() -> None:
    """The registry has the schema that it was written with; each is asked for once."""
    with registry() as server:
        server.schemas[42] = json.dumps(NEWER)
        writer = AvroCodec(json.dumps(NEWER))
        value = framed(42, writer.encode(json.dumps({**ROW, "more": 1})))
        codec = AvroCodec(json.dumps(SCHEMA), Registry(server.url))
        assert codec.decode(value) == codec.decode(value) == ROW
        assert server.calls == 1
        with pytest.raises(Undecodable, match="the registry has no such schema: /schemas/ids/43"):
            codec.decode(framed(43, value))
        with pytest.raises(Undecodable, match="does not begin with the id"):
            codec.decode(b"\x01" + value)
        server.broken = True
        with pytest.raises(RegistryError, match="500"):
            codec.decode(framed(44, value))


@pytest.mark.parametrize(
    "answer", [b"404 page not found\n", b'{"error_code": 404}', b"[40403]", b"\xff"]
)
def test_only_the_registry_knows_which_schemas_are_unknown(answer: bytes) -> None:
    """A 404 of an ingress is no reason to set good records aside."""
    with registry() as server:
        server.schemas[42] = json.dumps(SCHEMA)
        value = framed(42, AvroCodec(json.dumps(SCHEMA)).encode(TEXT))
        codec = AvroCodec(json.dumps(SCHEMA), Registry(server.url))
        server.proxied = answer
        with pytest.raises(RegistryError, match="404"):
            codec.decode(value)
        server.proxied = b""
        assert codec.decode(value) == ROW


def test_what_is_written_is_registered_once() -> None:
    with registry() as server:
        text = json.dumps(SCHEMA)
        codec = AvroCodec(text, Registry(server.url), "orders-value")
        values = [codec.encode(TEXT) for _ in range(3)]
        assert server.subjects == {"orders-value": [1]}
        assert server.schemas == {1: text}
        payload = values[0][5:]
        found: Any = fastavro.schemaless_reader(io.BytesIO(payload), SCHEMA, None)
        assert found["id"] == ROW["id"]
        assert codec.decode(values[2]) == ROW
    with pytest.raises(RegistryError, match="refused"):
        AvroCodec(text, Registry(server.url), "orders-value").encode(TEXT)


def descriptors() -> bytes:
    """Return what `protoc --include_imports --descriptor_set_out` makes of a file."""
    files = descriptor_pb2.FileDescriptorSet()
    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    for known in (timestamp_pb2, any_pb2, source_context_pb2, type_pb2):
        known.DESCRIPTOR.CopyToProto(files.file.add())
        file.dependency.append(known.DESCRIPTOR.name)
    kind = file.enum_type.add(name="Kind")
    kind.value.add(name="NEW", number=0)
    kind.value.add(name="OLD", number=1)
    order = file.message_type.add(name="Order")
    field = descriptor_pb2.FieldDescriptorProto
    item = order.nested_type.add(name="Item")
    item.field.add(name="name", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    for number, (name, kind_of, label) in enumerate(
        [
            ("id", field.TYPE_INT64, field.LABEL_OPTIONAL),
            ("raw", field.TYPE_BYTES, field.LABEL_OPTIONAL),
            ("prices", field.TYPE_DOUBLE, field.LABEL_REPEATED),
        ],
        1,
    ):
        order.field.add(name=name, number=number, type=kind_of, label=label)
    for number, (name, kind_of, type_name, label) in enumerate(
        [
            ("kind", field.TYPE_ENUM, ".shop.Kind", field.LABEL_OPTIONAL),
            ("at", field.TYPE_MESSAGE, ".google.protobuf.Timestamp", field.LABEL_OPTIONAL),
            ("items", field.TYPE_MESSAGE, ".shop.Order.Item", field.LABEL_REPEATED),
            ("first", field.TYPE_MESSAGE, ".shop.Order.Item", field.LABEL_OPTIONAL),
            ("detail", field.TYPE_MESSAGE, ".google.protobuf.Any", field.LABEL_OPTIONAL),
            ("option", field.TYPE_MESSAGE, ".google.protobuf.Option", field.LABEL_OPTIONAL),
        ],
        4,
    ):
        order.field.add(name=name, number=number, type=kind_of, type_name=type_name, label=label)
    files.file.append(file)
    return bytes(files.SerializeToString())


MESSAGE = {
    "id": 2**53 + 1,
    "raw": "AAE=",
    "prices": [1.5, 2.0],
    "kind": "OLD",
    "at": "2026-01-02T03:04:05.678901Z",
    "items": [{"name": "a"}],
    "first": {"name": "b"},
}


def test_messages_go_there_and_back() -> None:
    """A field that is not set and can tell is left out, others have their defaults."""
    codec = ProtobufCodec(descriptors(), "shop.Order")
    assert codec.decode(codec.encode(json.dumps(MESSAGE))) == MESSAGE
    empty = {"id": 0, "raw": "", "prices": [], "kind": "NEW", "items": []}
    assert codec.decode(b"") == empty
    with pytest.raises(Undecodable, match="not such a message"):
        codec.decode(b"\xff\xff")
    with pytest.raises(Unencodable, match="other"):
        codec.encode('{"other": 1}')


def test_times_of_zones_with_seconds_are_written() -> None:
    """The parser of Protocol Buffers takes no such offset."""
    codec = ProtobufCodec(descriptors(), "shop.Order")
    row = {"id": 1, "at": "1880-06-09T00:53:28.000000+00:53:28"}
    assert codec.decode(codec.encode(json.dumps(row)))["at"] == "1880-06-09T00:00:00Z"
    with pytest.raises(Unencodable):
        codec.encode(json.dumps(row | {"at": "0001-01-01T00:00:00.000000+00:53:28"}))


@given(
    st.builds(
        timestamp_pb2.Timestamp,
        seconds=st.integers(-(2**63), 2**63 - 1),
        nanos=st.integers(-(2**31), 2**31 - 1),
    ),
    st.sampled_from(["", "shop.Order", "types/google.protobuf.Timestamp"]),
    st.binary(max_size=30),
)
@example(timestamp_pb2.Timestamp(seconds=2**60), "types/google.protobuf.Timestamp", b"")
@example(timestamp_pb2.Timestamp(), "shop.Order", b"")
def test_any_bytes_are_a_message_or_refused(
    at: timestamp_pb2.Timestamp, type_url: str, value: bytes
) -> None:
    """Also those of well-known messages that JSON has no form for."""
    codec = ProtobufCodec(descriptors(), "shop.Order")
    late = at.SerializeToString()
    details = [any_pb2.Any(type_url=type_url, value=item) for item in (late, value)]
    options = [type_pb2.Option(value=detail) for detail in details]
    wells = [*((8, item) for item in details), *((9, item) for item in options), (5, at)]
    fields = [(number, item.SerializeToString()) for number, item in wells]
    for message in [value, *(bytes([n << 3 | 2, len(item)]) + item for n, item in fields)]:
        with suppress(Undecodable):
            json.dumps(codec.decode(message))


def test_what_is_declared_wrongly_is_told() -> None:
    with pytest.raises(ValueError, match=r"no message shop\.Cart"):
        ProtobufCodec(descriptors(), "shop.Cart")
    with pytest.raises(ValueError, match="not a valid Avro schema"):
        AvroCodec('{"type": "recrod"}')


def test_a_registry_may_hear_of_a_schema_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """As another one than that at which the producer has registered it."""
    with registry() as server:
        value = framed(42, AvroCodec(json.dumps(SCHEMA)).encode(TEXT))
        codec = AvroCodec(json.dumps(SCHEMA), Registry(server.url))
        pauses: list[float] = []

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == 2:
                server.schemas[42] = json.dumps(SCHEMA)

        monkeypatch.setattr(time, "sleep", pause)
        assert codec.decode(value) == ROW
        assert pauses == list(LATE_SECONDS[:2])
        for number in range(43, 53):  # what only looks like a record holds no more records up
            with pytest.raises(Undecodable):
                codec.decode(framed(number, value))
        assert pauses == [*LATE_SECONDS[:2], *LATE_SECONDS]
