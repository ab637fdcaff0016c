"""Messages of Protocol Buffers."""

import base64
import re
from datetime import UTC, datetime
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, EncodeError, Message

from streamgraft_common.encodings.codec import Undecodable, Unencodable
from streamgraft_common.encodings.columns import Columns
from streamgraft_common.encodings.protobuf_columns import WELL_KNOWN, misfits

_OLD_TIME = re.compile(r'"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}[+-]\d\d:\d\d:\d\d)"')
"""A time in a zone whose offset had seconds then, as Spark writes it; the parser takes none."""


class ProtobufCodec:
    """`descriptors`: a FileDescriptorSet with the file of the message and all that it imports."""

    def __init__(self, descriptors: bytes, message: str) -> None:
        pool = descriptor_pool.DescriptorPool()
        try:
            for file in descriptor_pb2.FileDescriptorSet.FromString(descriptors).file:
                pool.Add(file)
            self._class = message_factory.GetMessageClass(pool.FindMessageTypeByName(message))
        except (DecodeError, TypeError, KeyError) as error:
            raise ValueError(f"no message {message}: {error}") from error

    def decode(self, value: bytes) -> dict[str, Any]:
        """Return the JSON object of a message."""
        try:
            return plain(self._class.FromString(value))
        except (DecodeError, ValueError, TypeError, json_format.Error) as error:
            # Well-known messages have values without a form in JSON, such as times before year 1.
            raise Undecodable(f"not such a message: {error}") from error

    def encode(self, row: str) -> bytes:
        """Return the message of a row."""
        try:
            text = _OLD_TIME.sub(_in_utc, row)
            return bytes(json_format.Parse(text, self._class()).SerializeToString())
        except (json_format.ParseError, EncodeError, OverflowError) as error:
            raise Unencodable(str(error)) from error

    def unfit(self, columns: Columns) -> str:
        """Return which columns the message has no field or another type for, or wants besides."""
        return "; ".join(misfits(columns, self._class.DESCRIPTOR))


def _in_utc(time: re.Match[str]) -> str:
    return f'"{datetime.fromisoformat(time[1]).astimezone(UTC).isoformat()}"'


def plain(message: Message) -> dict[str, Any]:
    """Return the fields of a message, by their own names; those that are not set, if a message can
    tell, are left out."""
    return {
        field.name: _field(field, getattr(message, field.name))
        for field in message.DESCRIPTOR.fields
        if not field.has_presence or message.HasField(field.name)
    }


def _field(field: FieldDescriptor, value: Any) -> Any:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        of = field.message_type.fields_by_name["value"]
        return {str(name): _single(of, value[name]) for name in value}
    if field.is_repeated:
        return [_single(field, item) for item in value]
    return _single(field, value)


def _single(field: FieldDescriptor, value: Any) -> Any:
    if field.message_type is not None:
        known = field.message_type.full_name.startswith(WELL_KNOWN)
        return json_format.MessageToDict(value) if known else plain(value)
    if field.enum_type is not None:
        found = field.enum_type.values_by_number.get(value)
        return found.name if found else value
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value
