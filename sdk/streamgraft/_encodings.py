"""Formats of outside topics besides JSON."""

import base64
from dataclasses import dataclass

from streamgraft_common.encodings import Encoding


@dataclass(frozen=True)
class Avro:
    """Values are Avro records of `schema` (its JSON).

    `registry`: URL of a schema registry with Confluent's REST contract. Then each value begins with
    the id of the schema that it was written with; a sink registers its own under `<topic>-value`.
    What the registry asks for is in the job's Secret of restricted properties, never in the URL.
    """

    schema: str
    registry: str | None = None

    def encoding(self) -> Encoding:
        """Return it as the bundle has it."""
        return Encoding(kind="avro", schema_text=self.schema, registry=self.registry)


@dataclass(frozen=True)
class Protobuf:
    """Values are messages of Protocol Buffers.

    `descriptors`: what `protoc --include_imports --descriptor_set_out` writes; `message`: the full
    name, as `shop.Order`.
    """

    descriptors: bytes
    message: str

    def encoding(self) -> Encoding:
        """Return it as the bundle has it."""
        text = base64.b64encode(self.descriptors).decode()
        return Encoding(kind="protobuf", schema_text=text, message=self.message)


Format = str | Avro | Protobuf


def declared(format: Format) -> dict[str, object]:
    """Return the fields of an endpoint."""
    if isinstance(format, str):
        return {"format": format}
    encoding = format.encoding()
    return {"format": encoding.kind, "encoding": encoding}
