"""Values of Avro as JSON has them, in the forms that Spark reads.

fastavro converts logical types only where the writer's schema has them, does not know all of them,
and leaves the defaults of ours as they are. So the types of writers' schemas that matter get a
logical type of our own: its reader is told what a value was written as, and which type of ours it
is read as.
"""

import base64
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from fastavro.read import LOGICAL_READERS
from fastavro.schema import parse_schema

_MARK = "streamgraft"
_MEANT = "streamgraft-meant"
"""Where a marked type has the logical type that it was written as."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LOCAL_EPOCH = datetime(1970, 1, 1)
_EPOCH_ORDINAL = _EPOCH.toordinal()
_DAY_MICROS = 86_400_000_000
_NONE = object()

_Make = Callable[[Any, Mapping[str, Any]], str]


def _date(days: int, _: Mapping[str, Any]) -> str:
    return date.fromordinal(days + _EPOCH_ORDINAL).isoformat()


def _time(unit: int) -> _Make:
    def make(number: int, _: Mapping[str, Any]) -> str:
        micros = number * unit
        if not 0 <= micros < _DAY_MICROS:
            raise ValueError(f"{number} is no time of a day")
        seconds, micros = divmod(micros, 1_000_000)
        return time(seconds // 3600, seconds // 60 % 60, seconds % 60, micros).isoformat()

    return make


def _moment(epoch: datetime, numerator: int, denominator: int = 1) -> _Make:
    """Nanoseconds are cut to microseconds, of which Spark's timestamps are."""

    def make(number: int, _: Mapping[str, Any]) -> str:
        return (epoch + timedelta(microseconds=number * numerator // denominator)).isoformat()

    return make


def _decimal(data: bytes, schema: Mapping[str, Any]) -> str:
    return str(Decimal(f"{int.from_bytes(data, signed=True)}E-{schema.get('scale', 0)}"))


def _uuid(text: str, _: Mapping[str, Any]) -> str:
    return str(UUID(text))


_MAKES: dict[tuple[str, str], tuple[str, _Make]] = {
    ("int", "date"): ("moment", _date),
    ("long", "timestamp-millis"): ("moment", _moment(_EPOCH, 1000)),
    ("long", "timestamp-micros"): ("moment", _moment(_EPOCH, 1)),
    ("long", "timestamp-nanos"): ("moment", _moment(_EPOCH, 1, 1000)),
    ("long", "local-timestamp-millis"): ("moment", _moment(_LOCAL_EPOCH, 1000)),
    ("long", "local-timestamp-micros"): ("moment", _moment(_LOCAL_EPOCH, 1)),
    ("long", "local-timestamp-nanos"): ("moment", _moment(_LOCAL_EPOCH, 1, 1000)),
    ("int", "time-millis"): ("time", _time(1000)),
    ("long", "time-micros"): ("time", _time(1)),
    ("bytes", "decimal"): ("decimal", _decimal),
    ("fixed", "decimal"): ("decimal", _decimal),
    ("string", "uuid"): ("uuid", _uuid),
}
"""By type and logical type: of what kind the values are, and their text."""
_WRITTEN_AS = {
    "int": ("int",),
    "long": ("int", "long"),
    "bytes": ("bytes", "string"),
    "fixed": ("fixed",),
    "string": ("string", "bytes"),
}
"""The types that can be read as one of ours."""


class Reading:
    """How records are read as a schema of ours, which is the JSON of one that is valid."""

    def __init__(self, schema: Any) -> None:
        """Raise an error of Python's if a default is not of its type."""
        self._wanted: set[str] = set()
        named: dict[str, Any] = {}
        self.own = _marked(parse_schema(schema, named), self._mark_own)
        """For records of this very schema, which are read much faster without a reader's."""
        fields = [field for item in named.values() for field in item.get("fields", ())]
        defaults = [
            (field, _default(field["default"], field["type"], named))
            for field in fields
            if "default" in field
        ]
        for field, default in defaults:
            field["default"] = default

    def marked(self, writer: Any) -> Any:
        """Return a writer's schema, which fastavro has parsed, for a reader with ours; changed."""
        return _marked(writer, lambda kind, _: kind in self._wanted)

    def _mark_own(self, kind: str, meant: str) -> bool:
        wanted = (kind, meant) in _MAKES or kind in ("bytes", "fixed")
        if wanted:
            self._wanted.update(_WRITTEN_AS[kind])
        return wanted


def _marked(schema: Any, wanted: Callable[[str, str], bool]) -> Any:
    """Return a parsed schema, changed, in which the types that are wanted are marked."""
    if isinstance(schema, str):
        return _leaf({"type": schema}, wanted) if schema in _WRITTEN_AS else schema
    if isinstance(schema, list):
        schema[:] = [_marked(item, wanted) for item in schema]
        return schema
    if schema["type"] in _WRITTEN_AS:
        return _leaf(schema, wanted)
    for part in ("items", "values"):
        if part in schema:
            schema[part] = _marked(schema[part], wanted)
    for field in schema.get("fields", ()):
        field["type"] = _marked(field["type"], wanted)
    return schema


def _leaf(schema: dict[str, Any], wanted: Callable[[str, str], bool]) -> Any:
    kind, meant = schema["type"], schema.pop("logicalType", "")
    if wanted(kind, meant):
        schema.update({"logicalType": _MARK, _MEANT: meant})
        return schema
    return schema if kind == "fixed" else kind


def _default(value: Any, schema: Any, named: Mapping[str, Any]) -> Any:
    """Return a default of a marked schema as it is to be in the row."""
    schema = named.get(schema, schema) if isinstance(schema, str) else schema
    if isinstance(schema, list):
        others = [item for item in schema if item != "null"]
        return None if value is None or not others else _default(value, others[0], named)
    kind = schema["type"] if isinstance(schema, dict) else schema
    if kind == "array":
        return [_default(item, schema["items"], named) for item in value]
    if kind == "map":
        return {name: _default(item, schema["values"], named) for name, item in value.items()}
    if kind in ("record", "error"):
        return {
            field["name"]: _default(given, field["type"], named)
            for field in schema["fields"]
            if (given := value.get(field["name"], field.get("default", _NONE))) is not _NONE
        }
    return _read(value.encode("latin-1") if kind in ("bytes", "fixed") else value, schema)


def _read(value: Any, writer: Any, reader: Any = None) -> Any:
    """Return a value of a marked type; `reader`: as which type of ours, if not the same.

    Where both have logical types of one kind, the number means what its writer says.
    """
    ours = writer if reader is None else reader
    kind, meant = (ours, "") if isinstance(ours, str) else (ours["type"], ours.get(_MEANT, ""))
    value = _promoted(value, kind)
    if (made := _MAKES.get((kind, meant))) is None:
        return base64.b64encode(value).decode() if kind in ("bytes", "fixed") else value
    written = _MAKES.get((writer["type"], writer[_MEANT]))
    if written is not None and written[0] == made[0]:
        return written[1](value, writer)
    return made[1](value, ours)


def _promoted(value: Any, kind: str) -> Any:
    if kind in ("float", "double"):
        return float(value)
    if kind in ("bytes", "fixed"):
        return value if isinstance(value, bytes) else value.encode()
    return value.decode() if isinstance(value, bytes) else value


for _kind in _WRITTEN_AS:
    LOGICAL_READERS[f"{_kind}-{_MARK}"] = _read
