"""From what an application declares to the codec."""

import base64
from functools import lru_cache
from pathlib import Path

from streamgraft_common.encodings import Encoding
from streamgraft_common.encodings.avro import AvroCodec
from streamgraft_common.encodings.codec import Codec
from streamgraft_common.encodings.protobuf import ProtobufCodec
from streamgraft_common.encodings.registry import Registry


@lru_cache(256)
def codec_of(encoding: Encoding, topic: str, secret: Path | None = None) -> Codec:
    """Return the codec of a topic; one in each process. Raises ValueError.

    `secret`: the folder with what the registry is shown. Who only checks schemas needs none.
    """
    if encoding.kind == "protobuf":
        return ProtobufCodec(base64.b64decode(encoding.schema_text), encoding.message)
    registry = Registry(encoding.registry, secret) if encoding.registry else None
    return AvroCodec(encoding.schema_text, registry, f"{topic}-value")
