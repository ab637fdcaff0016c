"""Values of outside topics that are no JSON objects: Avro, with and without a schema registry, and
Protocol Buffers. The codecs run in Spark's Python workers."""

from typing import Literal

from streamgraft_common.adl_model import AdlModel


class Encoding(AdlModel):
    """How values are encoded."""

    kind: Literal["avro", "protobuf"]
    schema_text: str
    """Avro: the record's schema, JSON. Protobuf: a FileDescriptorSet, base64."""
    message: str = ""
    """Protobuf: full name of the message."""
    registry: str | None = None
    """Avro: URL of the schema registry whose ids the values carry. None: they have no ids, and all
    are of this schema."""
