"""Values of outside topics that are no JSON objects, as columns of Spark (Avro, Protocol Buffers).

Between here and there is JSON text, so all that holds of JSON holds of them. Spark's own functions
take one schema for all values, and know no registry.
"""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamgraft_common.encodings import Encoding
from streamgraft_common.encodings.codec import Undecodable
from streamgraft_common.encodings.codecs import codec_of
from streamgraft_pe_runtime.settings import RESTRICTED_PROPERTIES

Encodings = Mapping[tuple[int, str], Encoding]
"""By number of the target and topic."""
_DECODED = "text string, problem string"


def decoded(encoding: Encoding, topic: str) -> Column:
    """Return a struct of each value's JSON `text`, or else the `problem` with it."""
    # Not to be computed for the filter of malformed records and once more behind it.
    function = F.udf(_decoder(encoding, topic, _secret()), _DECODED, useArrow=True)
    return function.asNondeterministic()(F.col("value"))


def with_encoded(records: DataFrame, encodings: Encodings) -> DataFrame:
    """Return records whose JSON values are encoded, if they go to one of these topics."""
    if not encodings:
        return records
    function = F.udf(_encoder(dict(encodings), _secret()), "binary", useArrow=True)
    value = function(F.col("target"), F.col("topic"), F.col("value"))
    return records.withColumn("value", value)


def _secret() -> Path | None:
    """Return the folder with what registries are shown: workers get its path, and read it there."""
    folder = os.environ.get(RESTRICTED_PROPERTIES)
    return Path(folder) if folder else None


def _decoder(
    encoding: Encoding, topic: str, secret: Path | None
) -> Callable[[bytes], tuple[str | None, str | None]]:
    def decode(value: bytes) -> tuple[str | None, str | None]:
        try:
            return json.dumps(codec_of(encoding, topic, secret).decode(bytes(value))), None
        except Undecodable as error:
            return None, str(error)

    return decode


def _encoder(
    encodings: Encodings, secret: Path | None
) -> Callable[[int, str, bytes | None], bytes | None]:
    def encode(target: int, topic: str, value: bytes | None) -> bytes | None:
        if value is None or (target, topic) not in encodings:
            return value
        codec = codec_of(encodings[target, topic], topic, secret)
        return codec.encode(bytes(value).decode())

    return encode
