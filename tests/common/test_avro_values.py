"""Values of Avro: what they mean by the writer's schema and by ours, and which can be written."""

import base64
import io
import json
import os
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from streamgraft_common.encodings.avro import AvroCodec
from streamgraft_common.encodings.codec import Undecodable, Unencodable
from streamgraft_common.encodings.registry import Registry, framed

MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
NANOS = {"type": "long", "logicalType": "timestamp-nanos"}
LOCAL = {"type": "long", "logicalType": "local-timestamp-millis"}
LOCAL_NANOS = {"type": "long", "logicalType": "local-timestamp-nanos"}
DATE = {"type": "int", "logicalType": "date"}
TIME = {"type": "long", "logicalType": "time-micros"}
PRICE = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
FINER = {**PRICE, "scale": 4}
FIXED = {"type": "fixed", "name": "n.F", "size": 4}
FIXED_PRICE = {**PRICE, **FIXED}
UUID = {"type": "string", "logicalType": "uuid"}
IDENTITY = "8e5b3c3e-54e1-4e63-9a55-6b7a0e3c9b11"
NUMBER = 1_700_000_000_000
TEXT = "2023-11-14T22:13:20"
MOMENT = f"{TEXT}+00:00"


class Schemas(Registry):
    """Has one schema, of which the records are."""

    def __init__(self, schema: Any) -> None:
        super().__init__("http://nowhere.invalid")
        self._only = schema

    def schema(self, number: int) -> Any:
        """Return it as it was parsed anew."""
        return json.loads(json.dumps(self._only))


def record(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "T", "fields": [*fields]}


def of(kind: Any) -> dict[str, Any]:
    return record({"name": "v", "type": kind})


def written(schema: Any, row: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), row)
    return stream.getvalue()


def read(writer: Any, row: Any, ours: Any) -> dict[str, Any]:
    """Return what a record that was written by one schema is by ours, as JSON."""
    codec = AvroCodec(json.dumps(ours), Schemas(writer))
    found: dict[str, Any] = json.loads(json.dumps(codec.decode(framed(1, written(writer, row)))))
    return found


@pytest.mark.parametrize(
    ("writer", "value", "ours", "expected"),
    [
        ("long", NUMBER, MILLIS, MOMENT),
        ("long", NUMBER * 1000, MICROS, MOMENT),
        ("long", NUMBER * 1_000_000 + 999, NANOS, MOMENT),
        (NANOS, NUMBER * 1_000_000, NANOS, MOMENT),
        ("long", NUMBER, LOCAL, TEXT),
        (LOCAL_NANOS, NUMBER * 1_000_000, LOCAL_NANOS, TEXT),
        ("int", 18_000, MILLIS, "1970-01-01T00:00:18+00:00"),
        ("int", 18_000, DATE, "2019-04-14"),
        ("long", 3_723_000_001, TIME, "01:02:03.000001"),
        ("bytes", b"\x01\x00", PRICE, "2.56"),
        ("bytes", b"\xff", PRICE, "-0.01"),
        (FIXED, b"\0\0\1\0", FIXED_PRICE, "2.56"),
        ("string", IDENTITY, UUID, IDENTITY),
        ("bytes", IDENTITY.encode(), UUID, IDENTITY),
        ("string", "é", "bytes", "w6k="),
        (["null", "long"], NUMBER, ["null", MILLIS], MOMENT),
        (["null", "long"], None, ["null", MILLIS], None),
        ("long", NUMBER, [MILLIS, "null"], MOMENT),
        (
            {"type": "array", "items": "long"},
            [NUMBER],
            {"type": "array", "items": MILLIS},
            [MOMENT],
        ),
        (
            {"type": "map", "values": "int"},
            {"x": 1},
            {"type": "map", "values": DATE},
            {"x": "1970-01-02"},
        ),
        # Of several types, too: fastavro knows which it was.
        (["long", "string"], NUMBER, ["null", "string", MILLIS, DATE], MOMENT),
        (["long", "string"], "text", ["null", "string", MILLIS, DATE], "text"),
    ],
)
def test_ours_says_what_a_number_means(writer: Any, value: Any, ours: Any, expected: Any) -> None:
    """If its writer's schema does not."""
    assert read(of(writer), {"v": value}, of(ours)) == {"v": expected}


@pytest.mark.parametrize(
    ("writer", "value", "ours", "expected"),
    [
        (MILLIS, NUMBER, "long", NUMBER),
        (DATE, 18_000, "long", 18_000),
        (DATE, 18_000, "double", 18_000.0),
        (PRICE, Decimal("2.56"), "bytes", "AQA="),
        (UUID, "no UUID", "string", "no UUID"),
        (["null", MILLIS], NUMBER, ["null", "long"], NUMBER),
    ],
)
def test_without_a_logical_type_of_ours_it_stays_a_number(
    writer: Any, value: Any, ours: Any, expected: Any
) -> None:
    """Whether or not another column of ours has one."""
    assert read(of(writer), {"v": value}, of(ours)) == {"v": expected}
    more = {"name": "at", "type": MILLIS, "default": 0}
    assert (
        read(of(writer), {"v": value}, record({"name": "v", "type": ours}, more))["v"] == expected
    )


@pytest.mark.parametrize(
    ("writer", "value", "ours", "expected"),
    [
        (MILLIS, NUMBER, MICROS, MOMENT),
        (MICROS, NUMBER * 1000, NANOS, MOMENT),
        (DATE, 18_000, MILLIS, "2019-04-14"),
        (PRICE, Decimal("1.25"), FINER, "1.25"),
        (FINER, Decimal("1.2345"), PRICE, "1.2345"),
        # A date is no number of microseconds since midnight.
        (DATE, 18_000, TIME, "00:00:00.018000"),
    ],
)
def test_of_two_units_the_writers_holds(writer: Any, value: Any, ours: Any, expected: str) -> None:
    assert read(of(writer), {"v": value}, of(ours)) == {"v": expected}


@pytest.mark.parametrize(
    ("kind", "default", "expected"),
    [
        (MILLIS, NUMBER, MOMENT),
        (NANOS, NUMBER * 1_000_000, MOMENT),
        (DATE, 18_000, "2019-04-14"),
        ("bytes", "abcd", "YWJjZA=="),
        ("bytes", "ÿ\u0001", "/wE="),
        (FIXED, "abcd", "YWJjZA=="),
        (PRICE, "1", "0.49"),
        (["null", PRICE], None, None),
        ([PRICE, "null"], "\u0000", "0.00"),
        ({"type": "array", "items": DATE}, [0], ["1970-01-01"]),
        ({"type": "map", "values": "bytes"}, {"x": "a"}, {"x": "YQ=="}),
        ("long", 7, 7),
        ("double", 1, 1.0),
    ],
)
def test_defaults_are_read_as_values_are(kind: Any, default: Any, expected: Any) -> None:
    field = {"name": "new", "type": kind, "default": default}
    ours = record({"name": "v", "type": "int"}, field)
    assert read(of("int"), {"v": 1}, ours) == {"v": 1, "new": expected}


def test_defaults_of_records_within_records() -> None:
    inner = {"name": "x", "type": MILLIS, "default": 0}
    place = {"type": "record", "name": "n.P", "fields": [inner, {"name": "y", "type": "bytes"}]}
    fields = [
        {"name": "here", "type": place, "default": {"y": "a"}},
        {"name": "there", "type": "n.P", "default": {"x": NUMBER, "y": "b"}},
    ]
    assert read(of("int"), {"v": 1}, record({"name": "v", "type": "int"}, *fields)) == {
        "v": 1,
        "here": {"x": "1970-01-01T00:00:00+00:00", "y": "YQ=="},
        "there": {"x": MOMENT, "y": "Yg=="},
    }


def test_defaults_of_other_types_are_refused() -> None:
    field = {"name": "new", "type": ["null", MILLIS], "default": 10**30}
    with pytest.raises(ValueError, match="not a valid Avro schema"):
        AvroCodec(json.dumps(record(field)))


def test_a_time_beyond_the_day_is_malformed() -> None:
    for number in (-1, 86_400_000_000):
        with pytest.raises(Undecodable, match="no time of a day"):
            read(of("long"), {"v": number}, of(TIME))


@pytest.mark.parametrize(
    ("kind", "fits", "beyond"),
    [
        ("int", "-2147483648", "-2147483649"),
        ("int", "2147483647", "2147483648"),
        ("long", "9223372036854775807", "9223372036854775808"),
        (MILLIS, "0", "9223372036854775808"),
        (NANOS, '"2262-04-11T00:00:00Z"', '"2262-04-12T00:00:00Z"'),
        ("float", "3.4e38", "1e300"),
        ("float", '"NaN"', '"1e39"'),
        ("float", '"-Infinity"', '"-1e39"'),
        ("double", "1e300", "1e400"),
        ("double", '"Infinity"', '"1e400"'),
    ],
)
def test_numbers_out_of_range_are_not_written(kind: Any, fits: str, beyond: str) -> None:
    """Java reads another number of such bytes, or none."""
    codec = AvroCodec(json.dumps(of(kind)))
    assert codec.encode(f'{{"v": {fits}}}')
    with pytest.raises(Unencodable, match="is out of the range of"):
        codec.encode(f'{{"v": {beyond}}}')


@pytest.fixture
def elsewhere() -> Iterator[None]:
    """The process is in another time zone."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "America/New_York"
    time.tzset()
    yield
    del os.environ["TZ"]
    if before is not None:
        os.environ["TZ"] = before
    time.tzset()


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("kind", [MILLIS, MICROS, NANOS, LOCAL])
def test_moments_do_not_depend_on_where_the_process_is(kind: Any) -> None:
    """Without a time zone they are of UTC, as all of a PE is."""
    codec = AvroCodec(json.dumps(of(kind)))
    value = codec.encode(json.dumps({"v": TEXT}))
    zone = "" if kind is LOCAL else "+00:00"
    assert codec.decode(value) == {"v": f"{TEXT}{zone}"}
    assert codec.decode(codec.encode(json.dumps({"v": f"{TEXT}{zone}"}))) == {"v": f"{TEXT}{zone}"}
    assert codec.encode(json.dumps({"v": "2023-11-14"})) == written(
        of("long"), {"v": _units(kind, datetime(2023, 11, 14, tzinfo=UTC))}
    )


def _units(kind: Any, moment: datetime) -> int:
    per_second = {"millis": 10**3, "micros": 10**6, "nanos": 10**9}
    return int(moment.timestamp()) * per_second[kind["logicalType"].rpartition("-")[2]]


def test_what_fastavro_writes_is_read_by_its_meaning() -> None:
    """By our own reader of its logical types."""
    schema = record(
        {"name": "day", "type": DATE},
        {"name": "price", "type": FIXED_PRICE},
        {"name": "at", "type": MICROS},
    )
    at = datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    row = {"day": date(1, 1, 1), "price": Decimal("-1.50"), "at": at}
    assert AvroCodec(json.dumps(schema)).decode(written(schema, row)) == {
        "day": "0001-01-01",
        "price": "-1.50",
        "at": "1969-12-31T23:59:59.999999+00:00",
    }


def test_names_without_a_namespace_are_found_within_one_and_outside() -> None:
    inner = {
        "type": "record",
        "name": "In",
        "namespace": "",
        "fields": [{"name": "x", "type": "long"}],
    }
    outer = {"type": "record", "name": "n.Out", "fields": [{"name": "in", "type": inner}]}
    fixed = {"name": "id", "type": FIXED}
    writer = record(fixed, {"name": "out", "type": outer}, {"name": "again", "type": "In"})
    again = {"name": "same", "type": "n.F", "default": "abcd"}
    ours = record(
        {"name": "again", "type": {**inner, "fields": [{"name": "x", "type": MILLIS}]}},
        fixed,
        again,
    )
    row = {"id": b"abcd", "out": {"in": {"x": 0}}, "again": {"x": NUMBER}}
    assert read(writer, row, ours) == {"again": {"x": MOMENT}, "id": "YWJjZA==", "same": "YWJjZA=="}


def test_defaults_of_fields_without_a_column_are_written() -> None:
    """In Avro's JSON a text stands for bytes; fastavro takes none for them."""
    fixed = {"type": "fixed", "name": "f4", "size": 4}
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    fields = [
        {"name": "n", "type": "int"},
        {"name": "b", "type": "bytes", "default": "\u00ff\u0001"},
        {"name": "f", "type": fixed, "default": "abcd"},
        {"name": "d", "type": decimal, "default": "1"},
        {"name": "u", "type": ["bytes", "null"], "default": "x"},
        {"name": "s", "type": "string", "default": "text"},
        {"name": "l", "type": "long", "default": 7},
    ]
    codec = AvroCodec(json.dumps({"type": "record", "name": "r", "fields": fields}))
    assert codec.decode(codec.encode('{"n": 1}')) == {
        "n": 1,
        "b": base64.b64encode(b"\xff\x01").decode(),
        "f": base64.b64encode(b"abcd").decode(),
        "d": "0.49",
        "u": base64.b64encode(b"x").decode(),
        "s": "text",
        "l": 7,
    }
