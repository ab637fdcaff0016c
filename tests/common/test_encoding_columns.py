"""What the build says of columns agrees with what the codecs then write."""

import json
from contextlib import suppress
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, timestamp_pb2
from pyspark.sql import types as t
from tests.common.test_encodings import SCHEMA, descriptors

from streamgraft_common.encodings.avro import AvroCodec
from streamgraft_common.encodings.codec import Codec, Unencodable
from streamgraft_common.encodings.protobuf import ProtobufCodec

MOMENT = '"2026-01-02T03:04:05.678901Z"'
INNER = t.StructType([t.StructField("x", t.LongType())])
VALUES: dict[t.DataType, tuple[str, ...]] = {
    t.StringType(): ('"A"', '"1.5"', '"5"', '"2026-01-02"', MOMENT, '"03:04:05"'),
    t.VarcharType(5): ('"A"', '"1.5"', '"5"', '"2026-01-02"', MOMENT, '"03:04:05"'),
    t.ByteType(): ("3",),
    t.LongType(): ("0", "3"),
    t.DoubleType(): ("1.0", "1.5"),
    t.DecimalType(9, 0): ("12",),
    t.DecimalType(9, 2): ("12.30", "12.00"),
    t.DecimalType(9, 4): ("12.3000", "12.0000"),
    t.BooleanType(): ("true", "false"),
    t.DateType(): ('"2026-01-02"',),
    t.TimestampType(): (MOMENT,),
    t.TimestampNTZType(): (MOMENT.replace("Z", ""),),
    t.BinaryType(): ('"AAE="',),
    t.ArrayType(t.LongType()): ("[1]",),
    t.ArrayType(t.BooleanType()): ("[true]",),
    t.MapType(t.StringType(), t.LongType()): ('{"x": 1}',),
    t.MapType(t.StringType(), t.BinaryType()): ('{"x": "AAE="}',),
    INNER: ('{"x": 1}',),
    t.StructType([t.StructField("x", t.BinaryType())]): ('{"x": "AAE="}',),
}
"""What Spark writes in JSON for columns of these types."""

WHOLE = "byte long decimal(9,0)"
NUMBERS = f"{WHOLE} double decimal(9,2) decimal(9,4)"
TEXT = "string varchar(5)"
WRITTEN_AS_TEXT = f"{TEXT} date timestamp timestamp_ntz binary"
AVRO: list[tuple[Any, str]] = [
    ("boolean", "boolean"),
    ("int", WHOLE),
    ("long", WHOLE),
    ("float", f"{TEXT} {NUMBERS}"),
    ("double", f"{TEXT} {NUMBERS}"),
    ("string", WRITTEN_AS_TEXT),
    ({"type": "string", "logicalType": "uuid"}, WRITTEN_AS_TEXT),
    ({"type": "enum", "name": "E", "symbols": ["A"]}, TEXT),
    ("bytes", "binary"),
    ({"type": "fixed", "name": "F", "size": 2}, "binary"),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        f"{TEXT} {WHOLE} double decimal(9,2)",
    ),
    ({"type": "int", "logicalType": "date"}, f"{TEXT} date"),
    ({"type": "int", "logicalType": "time-millis"}, TEXT),
    (
        {"type": "long", "logicalType": "timestamp-micros"},
        f"{TEXT} {WHOLE} date timestamp timestamp_ntz",
    ),
    ({"type": "array", "items": "long"}, "array(long)"),
    ({"type": "map", "values": "long"}, "map(long)"),
    ({"type": "record", "name": "R", "fields": [{"name": "x", "type": "long"}]}, "struct(long)"),
    (["null", "boolean"], "boolean"),
    (["boolean", "null"], "boolean"),
    (["null", "string", "long"], ""),
]
KINDS = descriptor_pb2.FieldDescriptorProto
PROTOBUF: list[tuple[int, str, str]] = [
    (KINDS.TYPE_BOOL, "", "boolean"),
    (KINDS.TYPE_INT64, "", f"{TEXT} {NUMBERS}"),
    (KINDS.TYPE_UINT32, "", f"{TEXT} {NUMBERS}"),
    (KINDS.TYPE_DOUBLE, "", f"{TEXT} {NUMBERS}"),
    (KINDS.TYPE_STRING, "", WRITTEN_AS_TEXT),
    (KINDS.TYPE_BYTES, "", "binary"),
    (KINDS.TYPE_ENUM, ".t.Kind", f"{TEXT} {WHOLE}"),
    (KINDS.TYPE_MESSAGE, ".t.Inner", "struct(long)"),
    (KINDS.TYPE_MESSAGE, ".google.protobuf.Timestamp", f"{TEXT} timestamp"),
]


def shown(kind: t.DataType) -> str:
    """Return a type's name as the tables above have it."""
    found = kind.jsonValue()
    if isinstance(kind, t.StructType):
        return f"struct({kind['x'].dataType.jsonValue()})"
    if not isinstance(found, dict):
        return str(found)
    return f"{found['type']}({found.get('elementType') or found['valueType']})"


def problem(codec: Codec, kind: t.DataType) -> str:
    """Return what the build would say of a column `v`."""
    return codec.unfit(t.StructType([t.StructField("v", kind)]).jsonValue()["fields"])


def can_be_written(codec: Codec, values: tuple[str, ...]) -> bool:
    for value in values:
        with suppress(Unencodable):
            codec.encode(f'{{"v": {value}}}')
            return True
    return False


def accepted(codec: Codec) -> set[str]:
    """Return the types that the build takes; of each, some value can be written."""
    found = {kind for kind in VALUES if not problem(codec, kind)}
    assert all(can_be_written(codec, VALUES[kind]) for kind in found)
    return {shown(kind) for kind in found}


@pytest.mark.parametrize(("schema", "takes"), AVRO)
def test_avro_takes(schema: Any, takes: str) -> None:
    fields = [{"name": "v", "type": schema}]
    codec = AvroCodec(json.dumps({"type": "record", "name": "T", "fields": fields}))
    assert accepted(codec) == set(takes.split())


def messages() -> bytes:
    """Return a file with a message `Of<n>` for each field of the table."""
    files = descriptor_pb2.FileDescriptorSet()
    timestamp_pb2.DESCRIPTOR.CopyToProto(files.file.add())
    file = files.file.add(name="t.proto", package="t", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    file.enum_type.add(name="Kind").value.add(name="A", number=0)
    inner = file.message_type.add(name="Inner")
    inner.field.add(name="x", number=1, type=KINDS.TYPE_INT64, label=KINDS.LABEL_OPTIONAL)
    for number, (kind, name, _) in enumerate(PROTOBUF):
        made = file.message_type.add(name=f"Of{number}")
        made.field.add(
            name="v", number=1, type=kind, type_name=name or None, label=KINDS.LABEL_OPTIONAL
        )
    return bytes(files.SerializeToString())


@pytest.mark.parametrize("number", range(len(PROTOBUF)))
def test_protobuf_takes(number: int) -> None:
    codec = ProtobufCodec(messages(), f"t.Of{number}")
    assert accepted(codec) == set(PROTOBUF[number][2].split())


def columns(**types: t.DataType) -> Any:
    return t.StructType([t.StructField(*item) for item in types.items()]).jsonValue()["fields"]


def test_problems_say_where() -> None:
    """Within arrays, maps and records as well; all of them."""
    fields: dict[str, t.DataType] = {
        "id": t.StringType(),
        "price": t.DecimalType(9, 4),
        "at": t.TimestampType(),
        "raw": t.BinaryType(),
        "tags": t.ArrayType(t.LongType()),
        "counts": t.MapType(t.StringType(), t.DoubleType()),
        "place": t.StructType([t.StructField("y", t.DoubleType())]),
    }
    assert AvroCodec(json.dumps(SCHEMA)).unfit(columns(**fields)).split("; ") == [
        "id is of type string, which can't be written as long",
        "price has 4 decimal places, the schema 2",
        "tags[] is of type long, which can't be written as string",
        "counts[] is of type double, which can't be written as int",
        "the schema has no field place.y",
        "the schema wants place.x",
    ]
    items = t.ArrayType(t.StructType([t.StructField("name", t.BooleanType())]))
    message = columns(id=t.DateType(), prices=t.DoubleType(), items=items, first=INNER)
    assert ProtobufCodec(descriptors(), "shop.Order").unfit(message).split("; ") == [
        "id is of type date, which can't be written as int64",
        "prices is of type double, which can't be written as array of double",
        "items[].name is of type boolean, which can't be written as string",
        "the message has no field first.x",
    ]


def test_several_types_may_be_in_fields_without_a_column() -> None:
    union = {"name": "w", "type": ["null", "string", "long"], "default": None}
    fields = [{"name": "v", "type": "long"}, union]
    codec = AvroCodec(json.dumps({"type": "record", "name": "T", "fields": fields}))
    assert problem(codec, t.LongType()) == ""
    assert codec.unfit(columns(v=t.LongType(), w=t.LongType())) == (
        "w: of unions only those of null and one type can be written"
    )
