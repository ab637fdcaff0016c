"""Avro records."""

import base64
import io
import json
from datetime import date, time
from decimal import Decimal
from typing import Any

import fastavro
from fastavro.schema import SchemaParseException, parse_schema

from streamgraft_common.encodings.avro_bounds import check_bounded
from streamgraft_common.encodings.avro_columns import misfits, only_type
from streamgraft_common.encodings.avro_numbers import NUMBERS, moment, number
from streamgraft_common.encodings.avro_reading import Reading
from streamgraft_common.encodings.codec import Undecodable, Unencodable
from streamgraft_common.encodings.columns import Columns
from streamgraft_common.encodings.registry import Registry, UnknownSchema, framed, unframed

_TIMES = {
    "date": date.fromisoformat,
    "time-millis": time.fromisoformat,
    "time-micros": time.fromisoformat,
    "decimal": Decimal,
}


class AvroCodec:
    """`registry`: whose ids values carry; `subject`: under which our own schema is registered."""

    def __init__(self, schema: str, registry: Registry | None = None, subject: str = "") -> None:
        self._text = schema
        self._named: dict[str, Any] = {}
        try:
            self._schema = parse_schema(json.loads(schema), named_schemas=self._named)
            check_bounded(self._schema)
            self._reading = Reading(json.loads(schema))
        except (
            SchemaParseException,
            ValueError,
            TypeError,  # this one and what follows: defaults of other types
            AttributeError,
            ArithmeticError,
            RecursionError,
        ) as error:
            raise ValueError(f"not a valid Avro schema: {error}") from error
        named = self._named.items()
        self._binary_defaults = {name: self._defaults_of(record) for name, record in named}
        self._registry = registry
        self._subject = subject
        self._writers: dict[int, tuple[Any, Any]] = {}

    def decode(self, value: bytes) -> dict[str, Any]:
        """Return the JSON object of a value, as our schema reads it."""
        writer, reader = self._reading.own, None
        try:
            if self._registry is not None:
                number, value = unframed(value)
                writer, reader = self._writer(self._registry, number)
            stream = io.BytesIO(value)
            row: Any = fastavro.schemaless_reader(stream, writer, reader)
        except (
            UnknownSchema,
            ValueError,
            LookupError,
            TypeError,
            EOFError,
            ArithmeticError,  # a date or a time that Python's types have no place for
            RecursionError,
        ) as error:
            raise Undecodable(str(error) or type(error).__name__) from error
        except Exception as error:  # fastavro raises many kinds for bytes that are no such record
            if type(error).__module__.startswith("fastavro"):
                raise Undecodable(str(error)) from error
            raise
        if stream.read(1):
            raise Undecodable("there are bytes behind the record")
        if not isinstance(row, dict):
            raise Undecodable("it is no record")
        return row

    def encode(self, row: str) -> bytes:
        """Return the value of a row, by our schema."""
        stream = io.BytesIO()
        try:
            typed = self._typed(json.loads(row, parse_float=Decimal), self._schema)
            fastavro.schemaless_writer(stream, self._schema, typed)
        except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError) as error:
            raise Unencodable(f"{row[:200]}: {error}") from error
        if self._registry is None:
            return stream.getvalue()
        return framed(self._registry.register(self._subject, self._text), stream.getvalue())

    def _writer(self, registry: Registry, number: int) -> tuple[Any, Any]:
        """Return the schema of a record and its reader's, made once. Raises UnknownSchema,
        RegistryError, ValueError and errors of fastavro."""
        if number not in self._writers:
            found = parse_schema(registry.schema(number))
            check_bounded(found)
            same = found == self._schema
            own = self._reading.own
            self._writers[number] = (own, None) if same else (self._reading.marked(found), own)
        return self._writers[number]

    def unfit(self, columns: Columns) -> str:
        """Return which columns the schema has no field or another type for, or wants besides."""
        record = self._schema if isinstance(self._schema, dict) else {}
        return "; ".join(misfits(columns, {"fields": (), **record}, self._named))

    def _defaults_of(self, record: Any) -> dict[str, bytes]:
        """Return a record's defaults of bytes: a text stands for each, which fastavro refuses."""
        found: dict[str, bytes] = {}
        for field in record.get("fields", ()):
            kind = field["type"][0] if isinstance(field["type"], list) else field["type"]
            kind = self._named.get(kind, kind) if isinstance(kind, str) else kind
            binary = (kind["type"] if isinstance(kind, dict) else kind) in ("bytes", "fixed")
            if binary and isinstance(field.get("default"), str):
                found[field["name"]] = field["default"].encode("latin-1")
        return found

    def _typed(self, value: Any, schema: Any) -> Any:
        """Return a JSON value as fastavro wants it for a schema."""
        schema = self._named.get(schema, schema) if isinstance(schema, str) else schema
        if value is None and (schema == "null" or (isinstance(schema, list) and "null" in schema)):
            return None
        if isinstance(schema, list):
            return self._typed(value, only_type(schema))
        kind = schema["type"] if isinstance(schema, dict) else schema
        if value is None:  # which fastavro would write as False, for one
            raise ValueError(f"null where the schema has {kind} only")
        if kind == "record":
            fields = {item["name"]: item["type"] for item in schema["fields"]}
            if strange := value.keys() - fields.keys():
                raise ValueError(f"the schema has no field {', '.join(sorted(strange))}")
            typed = {name: self._typed(item, fields[name]) for name, item in value.items()}
            return self._binary_defaults[schema["name"]] | typed
        if kind == "array":
            return [self._typed(item, schema["items"]) for item in value]
        if kind == "map":
            return {name: self._typed(item, schema["values"]) for name, item in value.items()}
        logical = schema.get("logicalType", "") if isinstance(schema, dict) else ""
        if isinstance(value, str) and "timestamp" in logical:
            return moment(value, logical)
        if logical in _TIMES:
            return _TIMES[logical](str(value))
        if kind in ("bytes", "fixed"):
            return base64.b64decode(value)
        return number(value, kind) if kind in NUMBERS else value
